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

/// That of the controllers of bundles.
pub(super) fn documents() -> Vec<Document> {
    let guard = format!("0.0.0.0:{PORT}");
    let controllers = format!("--controllers={}", Controllers::BUNDLES);
    let arguments = [&controllers, "--admission-bind", &guard];
    let port = json!({ "name": PORT_NAME, "containerPort": PORT });
    vec![Document::commented(
        COMMENT,
        deployment(NAME, &arguments, Some(port)),
    )]
}

/// That of the controllers of certificates.
pub(super) fn certificates_documents() -> Vec<Document> {
    let controllers = format!("--controllers={}", Controllers::CERTIFICATES);
    vec![Document::commented(
        CERTIFICATES_COMMENT,
        deployment(CERTIFICATES_ACCOUNT, &[&controllers], None),
    )]
}

/// That of the controllers of policies.
pub(super) fn policies_documents() -> Vec<Document> {
    let address = format!("0.0.0.0:{PORT}");
    let controllers = format!("--controllers={}", Controllers::POLICIES);
    let arguments = [&controllers, "--admission-bind", &address];
    let port = json!({ "name": PORT_NAME, "containerPort": PORT });
    let name = AdmissionService::POLICIES.name;
    vec![Document::commented(
        POLICIES_COMMENT,
        deployment(name, &arguments, Some(port)),
    )]
}

/// A Deployment of `windlass run` with these arguments, of the ServiceAccount of the same name.
fn deployment(name: &str, arguments: &[&str], port: Option<Value>) -> Value {
    let labels = json!({ "app.kubernetes.io/name": name });
    let arguments = ["run", "--bind", "0.0.0.0:8080"].iter().chain(arguments);
    let health = json!({ "name": "health", "containerPort": 8080 });
    let ports: Vec<_> = std::iter::once(health).chain(port).collect();
    let image = concat!("ghcr.io/windlass-dev/windlass:v", env!("CARGO_PKG_VERSION"));
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "health" } });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "replicas": 2,
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } },
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": name,
                    "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    "terminationGracePeriodSeconds": 30,
                    "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
                        "weight": 100,
                        "podAffinityTerm": {
                            "labelSelector": { "matchLabels": labels },
                            "topologyKey": "kubernetes.io/hostname",
                        },
                    }] } },
                    "containers": [{
                        "name": name,
                        "image": image,
                        "args": arguments.collect::<Vec<_>>(),
                        "env": [
                            { "name": "WINDLASS_NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } },
                            { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                        ],
                        "ports": ports,
                        "lifecycle": { "preStop": { "sleep": { "seconds": 5 } } },
                        "livenessProbe": probe("/livez"),
                        "readinessProbe": probe("/readyz"),
                        "resources": { "requests": { "cpu": "50m", "memory": "64Mi" }, "limits": { "memory": "512Mi" } },
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
