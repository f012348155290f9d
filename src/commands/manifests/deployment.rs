//! The Deployments of Windlass: one for each group of controllers.

use serde_json::{Value, json};
use windlass_operator::{
    Controllers,
    admission::{AdmissionService, CERTIFICATES_ACCOUNT},
};

use super::{
    document::{Document, NAME, NAMESPACE},
    guard::{PORT, PORT_NAME},
};

/// The comment on the Deployment of the bundle controllers.
const COMMENT: &str = "The controllers of bundles, and the guard. Leader election with the Lease windlass in this namespace: one replica leads,
the other stands by. Webhooks depend on neither: while both are down, their servers keep using their certificates.";

/// The comment on the Deployment of the certificate controllers.
const CERTIFICATES_COMMENT: &str = "The controllers of certificates, separate from those of bundles, which therefore cannot delay a rotation. Leader election
with the Lease windlass-certificates; the other replica repairs trust bundles too.";

/// The comment on the Deployment of the policy controllers.
const POLICIES_COMMENT: &str = "The controllers of policies, and the policy server, which runs in every replica. Leader election with the Lease
windlass-policies; the leader writes the webhook configurations and the status of policies.";

/// The port of probes and metrics.
pub(super) const HEALTH_PORT: u16 = 8080;

/// The repository of the image.
pub(super) const REPOSITORY: &str = "ghcr.io/windlass-dev/windlass";

/// The tag of the image.
pub(super) const TAG: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Returns the image of the manifests.
pub fn image() -> String {
    format!("{REPOSITORY}:{TAG}")
}

/// Pods per Deployment.
pub(super) const REPLICAS: u8 = 2;

/// Returns the resources of a pod. With 1000 ServingCertificates it uses 80 MiB; with 500
/// CustomResourceDefinitions and 5000 Secrets in the cluster 470 MiB (`e2e/soak idle` and `crowd`).
pub(super) fn resources() -> Value {
    json!({ "requests": { "cpu": "50m", "memory": "96Mi" }, "limits": { "memory": "768Mi" } })
}

/// Returns the Deployment of the bundle controllers.
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

/// Returns the Deployment of the certificate controllers.
pub(super) fn certificates_documents() -> Vec<Document> {
    let controllers = format!("--controllers={}", Controllers::CERTIFICATES);
    let deployment = deployment(CERTIFICATES_ACCOUNT, &[&controllers], None);
    vec![
        Document::commented(CERTIFICATES_COMMENT, deployment),
        disruption_budget(CERTIFICATES_ACCOUNT),
    ]
}

/// Returns the Deployment of the policy controllers.
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

/// Lets one pod of a Deployment be evicted at a time. `minAvailable` would block drains where a user sets a
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

/// Returns a Deployment of `windlass run` with these arguments.
fn deployment(name: &str, arguments: &[&str], port: Option<Value>) -> Value {
    let address = format!("0.0.0.0:{HEALTH_PORT}");
    let arguments = [&["run", "--bind", &address], arguments].concat();
    let health = json!({ "name": "health", "containerPort": HEALTH_PORT });
    let ports: Vec<_> = std::iter::once(health).chain(port).collect();
    deployment_with_ports(name, &arguments, &ports, &json!({ "port": "health" }))
}

/// Returns a Deployment with these arguments and the ServiceAccount of the same name. `probed` is the port
/// and scheme of the probes.
pub(super) fn deployment_with_ports(
    name: &str,
    arguments: &[&str],
    ports: &[Value],
    probed: &Value,
) -> Value {
    let labels = json!({ "app.kubernetes.io/name": name });
    let image = image();
    // Per revision, since the old pods of an upgrade are about to terminate.
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
