//! What asks for certificates and trust bundles, and is never called.

use serde_json::{Value, json};
use windlass_scenarios::steps::{CRDS, MUTATING, VALIDATING};

/// The kinds of targets that a bundle has.
pub(super) const TARGET_KINDS: [(&str, &str, &str); 3] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition", CRDS),
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        MUTATING,
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        VALIDATING,
    ),
];

/// The group of the resources of targets, which nobody sends anything to.
pub(super) const GROUP: &str = "idle.example.com";

/// A ServingCertificate for the Service of the same name.
pub(super) fn certificate(name: &str) -> Value {
    json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate", "metadata": {"name": name},
        "spec": {"serviceName": name, "secretName": format!("{name}-cert")}})
}

/// A Service without pods.
pub(super) fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 443, "targetPort": 9443}]}})
}

/// A webhook that asks for the trust bundle of a ServingCertificate, and that is never called: nothing serves its resource.
pub(super) fn target(namespace: &str, name: &str, certificate: &str) -> Value {
    let annotations = json!({"windlass.dev/inject-ca-from": format!("{namespace}/{certificate}")});
    configuration(name, &annotations, namespace, certificate, 1)
}

/// A ValidatingWebhookConfiguration whose webhooks call one Service, and are never called.
pub(super) fn configuration(
    name: &str,
    annotations: &Value,
    namespace: &str,
    service: &str,
    webhooks: u32,
) -> Value {
    let webhooks = (0..webhooks).map(|number| {
        json!({"name": format!("{name}-{number}.idle.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"namespace": namespace, "name": service}},
            "rules": [{"apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["nothings"]}]})
    });
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "annotations": annotations}, "webhooks": webhooks.collect::<Vec<_>>()})
}
