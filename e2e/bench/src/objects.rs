//! What asks for certificates and trust bundles, and is never called.

use serde_json::{Value, json};

pub(super) fn certificate(name: &str) -> Value {
    json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate", "metadata": {"name": name},
        "spec": {"serviceName": name, "secretName": format!("{name}-cert")}})
}

/// A webhook that asks for the trust bundle of a ServingCertificate, and that is never called: nothing serves its resource.
pub(super) fn target(namespace: &str, name: &str, certificate: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "annotations": {"windlass.dev/inject-ca-from": format!("{namespace}/{certificate}")}},
        "webhooks": [{"name": format!("{name}.idle.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"namespace": namespace, "name": certificate}},
            "rules": [{"apiGroups": ["idle.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["nothings"]}]}]})
}
