//! The operator's namespace, and what holds for all pods in it.

use serde_json::{Value, json};
use windlass_operator::admission::{AdmissionService, CERTIFICATES_ACCOUNT};

use super::{
    deployment::HEALTH_PORT,
    document::{Document, NAME, NAMESPACE, labels},
    guard, ui,
};

/// Why the pods may as well be restricted.
const NAMESPACE_COMMENT: &str = "Holds the keys of all CAs: nobody but administrators of the cluster should read Secrets or write ConfigMaps here. Its pods need
nothing that the Pod Security Standard \"restricted\" forbids.";

/// How important the pods are.
const PRIORITY_COMMENT: &str = "Before applications, since it renews the certificates of their webhooks; after system-cluster-critical, which a cluster needs
to run at all.";

/// Who may connect to whom.
const NETWORK_COMMENT: &str = "Who may connect to the pods: anybody, but only to the ports that are meant for others. The API server calls the webhooks from
addresses that no selector names, and so do kubelets and Prometheus. Egress is not restricted: proofs connect to webhook servers
in any namespace, on any port.";

/// The namespace and what it restricts, in the order in which they are to be applied.
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
