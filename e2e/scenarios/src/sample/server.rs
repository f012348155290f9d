//! Servers of the sample with certificates of another issuer.

use serde_json::{Value, json};

use super::IMAGE;

/// A Deployment of servers that present the certificate of a Secret, behind the Service of the same name,
/// which selects `app: NAME` and targets port 9443.
pub fn server(name: &str, secret: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "containers": [{
                    "name": "manager", "image": format!("{IMAGE}:v1"),
                    "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                    "ports": [{"name": "webhook", "containerPort": 9443}],
                    "readinessProbe": {"tcpSocket": {"port": 9443}, "periodSeconds": 1},
                    "volumeMounts": [{"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"}],
                }],
                "volumes": [{"name": "cert", "secret": {"secretName": secret}}],
            }},
        },
    })
}
