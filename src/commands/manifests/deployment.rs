//! The operator's own Deployments: one for each group of controllers.

use serde_json::{Value, json};
use windlass_operator::{
    Controllers,
    admission::{AdmissionService, CERTIFICATES_ACCOUNT},
};

use super::{
    document::{Document, NAME, NAMESPACE},
    guard::{PORT, PORT_NAME},
};

/// How replicas work together, and what hangs on them.
const COMMENT: &str = "The controllers of bundles, and the guard. Leader election by the Lease windlass in this namespace: one replica leads,
the other stands by. Webhooks depend on neither: while both are down, the servers keep using their current certificates.";

/// Why certificates have processes of their own.
const CERTIFICATES_COMMENT: &str = "The controllers of certificates, apart from those of bundles: no bundle holds up a rotation. Leader election by the
Lease windlass-certificates; the other replica repairs trust bundles, too.";

/// Why policies have processes of their own.
const POLICIES_COMMENT: &str = "The controllers of policies, and the server that answers from them: every replica does. Leader election by the Lease
windlass-policies; the leader writes the webhook configurations and the status of policies.";

/// The port of probes and metrics.
pub(super) const HEALTH_PORT: u16 = 8080;

/// Where the image is.
pub(super) const REPOSITORY: &str = "ghcr.io/windlass-dev/windlass";

/// The tag of the image.
pub(super) const TAG: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// The image of the manifests.
pub fn image() -> String {
    format!("{REPOSITORY}:{TAG}")
}

/// How many pods each Deployment has.
pub(super) const REPLICAS: u8 = 2;

/// What a pod gets. With 1000 ServingCertificates it uses 80 MiB, beside 500 CustomResourceDefinitions and 5000 Secrets 470 MiB
/// (`e2e/soak idle` and `crowd`).
pub(super) fn resources() -> Value {
    json!({ "requests": { "cpu": "50m", "memory": "96Mi" }, "limits": { "memory": "768Mi" } })
}

/// That of the controllers of bundles.
pub(super) fn documents() -> Vec<Document> {
    let guard = format!("0.0.0.0:{PORT}");
    let controllers = format!("--controllers={}", Controllers::BUNDLES);
    let arguments = [&controllers, "--admission-bind", &guard];
    let port = json!({ "name": PORT_NAME, "containerPort": PORT });
    vec![
        Document::commented(COMMENT, deployment(NAME, &arguments, Some(port))),
        disruption_budget(NAME),
    ]
}

/// That of the controllers of certificates.
pub(super) fn certificates_documents() -> Vec<Document> {
    let controllers = format!("--controllers={}", Controllers::CERTIFICATES);
    let deployment = deployment(CERTIFICATES_ACCOUNT, &[&controllers], None);
    vec![
        Document::commented(CERTIFICATES_COMMENT, deployment),
        disruption_budget(CERTIFICATES_ACCOUNT),
    ]
}

/// That of the controllers of policies.
pub(super) fn policies_documents() -> Vec<Document> {
    let address = format!("0.0.0.0:{PORT}");
    let controllers = format!("--controllers={}", Controllers::POLICIES);
    let arguments = [&controllers, "--admission-bind", &address];
    let port = json!({ "name": PORT_NAME, "containerPort": PORT });
    let name = AdmissionService::POLICIES.name;
    let deployment = deployment(name, &arguments, Some(port));
    vec![
        Document::commented(POLICIES_COMMENT, deployment),
        disruption_budget(name),
    ]
}

/// One pod of a Deployment at a time may be evicted. Not as a least number that stays: that would hold up drains where somebody wants a
/// single replica.
pub(super) fn disruption_budget(name: &str) -> Document {
    let labels = json!({ "app.kubernetes.io/name": name });
    Document::new(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": { "matchLabels": labels },
        },
    }))
}

/// A Deployment of `windlass run` with these arguments.
fn deployment(name: &str, arguments: &[&str], port: Option<Value>) -> Value {
    let address = format!("0.0.0.0:{HEALTH_PORT}");
    let arguments = [&["run", "--bind", &address], arguments].concat();
    let health = json!({ "name": "health", "containerPort": HEALTH_PORT });
    let ports: Vec<_> = std::iter::once(health).chain(port).collect();
    running(name, &arguments, &ports, &json!({ "port": "health" }))
}

/// A Deployment of Windlass with these arguments, of the ServiceAccount of the same name. `probed` is the port that is asked whether it
/// is well, and how.
pub(super) fn running(name: &str, arguments: &[&str], ports: &[Value], probed: &Value) -> Value {
    let labels = json!({ "app.kubernetes.io/name": name });
    let image = image();
    // Of each revision by itself: the old pods of an upgrade are about to go.
    let spread = |key: &str| {
        json!({
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": labels },
            "matchLabelKeys": ["pod-template-hash"],
        })
    };
    let probe = |path: &str| {
        let mut get = json!({ "path": path });
        for (field, value) in probed.as_object().into_iter().flatten() {
            get[field] = value.clone();
        }
        json!({ "httpGet": get })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "replicas": REPLICAS,
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } },
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": name,
                    "enableServiceLinks": false,
                    "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    "priorityClassName": NAME,
                    "terminationGracePeriodSeconds": 30,
                    "topologySpreadConstraints": [spread("topology.kubernetes.io/zone"), spread("kubernetes.io/hostname")],
                    "containers": [{
                        "name": name,
                        "image": image,
                        "args": arguments,
                        "env": [
                            { "name": "WINDLASS_NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } },
                            { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                        ],
                        "ports": ports,
                        "lifecycle": { "preStop": { "sleep": { "seconds": 5 } } },
                        "livenessProbe": probe("/livez"),
                        "readinessProbe": probe("/readyz"),
                        "resources": resources(),
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": { "drop": ["ALL"] },
                        },
                    }],
                },
            },
        },
    })
}
