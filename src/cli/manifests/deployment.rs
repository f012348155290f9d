//! The operator's own Deployment.

use serde_json::json;

use super::{Document, NAME, NAMESPACE, labels};

/// The Deployment.
pub(super) fn documents() -> Vec<Document> {
    let image = concat!("ghcr.io/windlass-dev/windlass:v", env!("CARGO_PKG_VERSION"));
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "health" } });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
        "spec": {
            "replicas": 1,
            "strategy": { "type": "Recreate" },
            "selector": { "matchLabels": labels() },
            "template": {
                "metadata": { "labels": labels() },
                "spec": {
                    "serviceAccountName": NAME,
                    "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    "terminationGracePeriodSeconds": 30,
                    "containers": [{
                        "name": NAME,
                        "image": image,
                        "args": ["run", "--bind", "0.0.0.0:8080"],
                        "env": [
                            { "name": "WINDLASS_NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } },
                            { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                        ],
                        "ports": [{ "name": "health", "containerPort": 8080 }],
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
    });
    let comment = "One replica, and never two at a time. Webhooks do not depend on it: while it is down they go on\nwith the certificates that they have.";
    vec![Document::commented(comment, deployment)]
}
