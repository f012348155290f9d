//! The operator's namespace, and objects that apply to all pods in it.

use serde_json::{Value, json};
use windlass_operator::admission::{AdmissionService, CERTIFICATES_ACCOUNT};

use super::{
    deployment::HEALTH_PORT,
    document::{Document, NAME, NAMESPACE, labels},
    guard, ui,
};

const NAMESPACE_COMMENT: &str = "Holds the keys of all CAs: only cluster administrators should read Secrets or write ConfigMaps here. Its pods comply with
the Pod Security Standard \"restricted\".";

/// The comment on the PriorityClass.
const PRIORITY_COMMENT: &str = "Above applications, since it renews the certificates of their webhooks; below system-cluster-critical, which a cluster needs
to run.";

/// The comment on the NetworkPolicy.
const NETWORK_COMMENT: &str = "Allows connections from anywhere, but only to the public ports of the pods. The API server calls the webhooks from addresses
that no selector can name, and so do kubelets and Prometheus. Egress is not restricted, since Windlass connects to webhook servers
in any namespace, on any port.";

/// Returns the namespace and its restrictions, in the order in which to apply them.
pub(super) fn documents() -> Vec<Document> {
    let mut labels = labels();
    for mode in ["enforce", "audit", "warn"] {
        labels[format!("pod-security.kubernetes.io/{mode}")] = "restricted".into();
    }
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE, "labels": labels }
    });
    vec![
        Document::commented(NAMESPACE_COMMENT, namespace),
        Document::commented(PRIORITY_COMMENT, priority_class()),
        Document::commented(NETWORK_COMMENT, network_policy()),
    ]
}

fn priority_class() -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": { "name": NAME, "labels": labels() },
        "value": 1_000_000,
        "globalDefault": false,
        "description": "The operator that issues the certificates of webhooks.",
    })
}

fn network_policy() -> Value {
    let pods = [
        NAME,
        CERTIFICATES_ACCOUNT,
        AdmissionService::POLICIES.name,
        ui::NAME,
    ];
    let port = |port: u16| json!({ "protocol": "TCP", "port": port });
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
        "spec": {
            "podSelector": { "matchExpressions": [{
                "key": "app.kubernetes.io/name", "operator": "In", "values": pods,
            }] },
            "policyTypes": ["Ingress"],
            "ingress": [{ "ports": [port(HEALTH_PORT), port(guard::PORT)] }],
        },
    })
}
