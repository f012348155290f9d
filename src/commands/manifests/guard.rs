//! The guard: the webhook that denies changes to conversions that Windlass manages.

use serde_json::json;
use windlass_object::names;
use windlass_operator::admission::{
    AdmissionService, CERTIFICATES_ACCOUNT, PATH, REMOVAL_PATH, service_account_user,
};

use super::document::{Document, NAME, NAMESPACE, labels};

/// The port on which the operator serves the guard.
pub(super) const PORT: u16 = 9443;

/// The name of that port in the Deployment and in the Service.
pub(super) const PORT_NAME: &str = "admission";

/// Returns the Service and the webhook configuration.
pub(super) fn documents() -> Vec<Document> {
    let AdmissionService { name: called, secret } = AdmissionService::GUARD;
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": called,
            "namespace": NAMESPACE,
            "labels": labels(),
            "annotations": { names::SERVING_CERT_SECRET: secret },
        },
        "spec": {
            "selector": labels(),
            "ports": [{ "name": PORT_NAME, "port": 443, "targetPort": PORT_NAME }],
        },
    });
    let users = [NAME, CERTIFICATES_ACCOUNT].map(|name| service_account_user(NAMESPACE, name));
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {
            "name": NAME,
            "labels": labels(),
            "annotations": { names::INJECT_CA_FROM: format!("{NAMESPACE}/{called}") },
        },
        "webhooks": [{
            "name": "guard.windlass.dev",
            "clientConfig": { "service": { "name": called, "namespace": NAMESPACE, "path": PATH, "port": 443 } },
            "rules": [{
                "apiGroups": ["apiextensions.k8s.io"],
                "apiVersions": ["v1"],
                "resources": ["customresourcedefinitions"],
                "operations": ["UPDATE", "DELETE"],
                "scope": "Cluster",
            }],
            "objectSelector": { "matchExpressions": [{ "key": names::BUNDLE_DEPLOYMENT, "operator": "Exists" }] },
            "matchConditions": [{
                "name": "not-by-windlass",
                "expression": format!("!(request.userInfo.username in ['{}'])", users.join("', '")),
            }],
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 3,
            "admissionReviewVersions": ["v1"],
        }, {
            "name": "removal.windlass.dev",
            "clientConfig": {
                "service": { "name": called, "namespace": NAMESPACE, "path": REMOVAL_PATH, "port": 443 },
            },
            "rules": [{
                "apiGroups": [names::GROUP],
                "apiVersions": ["v1alpha1"],
                "resources": ["bundledeployments"],
                "operations": ["DELETE"],
                "scope": "Cluster",
            }],
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 3,
            "admissionReviewVersions": ["v1"],
        }],
    });
    vec![
        Document::commented(CERTIFICATE, service),
        Document::commented(GUARD, configuration),
    ]
}

/// The comment on the Service.
const CERTIFICATE: &str = "Served by every replica. Windlass issues and rotates this certificate and the caBundle below like any other.";

/// The comment on the webhook configuration.
const GUARD: &str = "Protects conversions that Windlass manages. It is called only for CustomResourceDefinitions of BundleDeployments, and for the
deletion of BundleDeployments, which is denied if stored objects would block it forever. While no replica serves it, changes are
admitted and Windlass reverts them, so an outage blocks nothing. To bypass the guard, delete this object.";
