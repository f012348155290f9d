//! The operator's own Deployment.

use serde_json::json;

use super::{
    document::{Document, NAME, NAMESPACE, labels},
    guard::{PORT, PORT_NAME},
};

/// The Deployment.
pub(super) fn documents() -> Vec<Document> {
    let image = concat!("ghcr.io/windlass-dev/windlass:v", env!("CARGO_PKG_VERSION"));
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "health" } });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
        "spec": {
            "replicas": 2,
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } },
            "selector": { "matchLabels": labels() },
            "template": {
                "metadata": { "labels": labels() },
                "spec": {
                    "serviceAccountName": NAME,
                    "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    "terminationGracePeriodSeconds": 30,
                    "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
                        "weight": 100,
                        "podAffinityTerm": {
                            "labelSelector": { "matchLabels": labels() },
                            "topologyKey": "kubernetes.io/hostname",
                        },
                    }] } },
                    "containers": [{
                        "name": NAME,
                        "image": image,
                        "args": ["run", "--bind", "0.0.0.0:8080", "--admission-bind", format!("0.0.0.0:{PORT}")],
                        "env": [
                            { "name": "WINDLASS_NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } },
                            { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                        ],
                        "ports": [
                            { "name": "health", "containerPort": 8080 },
                            { "name": PORT_NAME, "containerPort": PORT },
                        ],
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
    });
    let comment = "Leader election by the Lease windlass in this namespace: one replica leads, the other stands by. Webhooks depend on\nneither: while both are down, the servers keep using their current certificates.";
    vec![Document::commented(comment, deployment)]
}
