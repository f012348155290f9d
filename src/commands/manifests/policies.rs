//! The objects of policies: their kinds, and a separate Deployment.

use serde_json::{Value, json};
use windlass_object::names;
use windlass_operator::admission::AdmissionService;

use super::{
    deployment,
    document::{Document, NAMESPACE},
    guard::PORT_NAME,
    rbac, user_facing_roles,
};

/// The name of the objects.
const NAME: &str = AdmissionService::POLICIES.name;

/// The comment at the beginning of the file.
const COMMENT: &str = "Optional: policies override and validate what is written to the cluster. Apply this file to turn them on.
To turn them off, remove the webhook configurations first, then their server:
  windlass policy disarm
  kubectl delete deployment windlass-policies -n windlass-system
Deleting the CustomResourceDefinitions deletes all policies.";

/// The comment on the Service.
const SERVICE: &str = "Served by every replica. Windlass issues and rotates this certificate, and writes the webhook configurations that call it.";

pub(super) fn documents() -> Vec<Document> {
    let mut crds = policy::crds().into_iter();
    let first = crds.next().map(|crd| Document::commented(COMMENT, crd));
    let mut documents: Vec<_> = first.into_iter().chain(crds.map(Document::new)).collect();
    documents.extend(rbac::policies_documents());
    documents.extend(user_facing_roles::policies_documents());
    documents.push(Document::commented(SERVICE, service()));
    documents.extend(deployment::policies_documents());
    documents
}

fn labels() -> Value {
    json!({ "app.kubernetes.io/name": NAME })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": labels(),
            "annotations": { names::SERVING_CERT_SECRET: AdmissionService::POLICIES.secret },
        },
        "spec": {
            "selector": labels(),
            "ports": [{ "name": PORT_NAME, "port": 443, "targetPort": PORT_NAME }],
        },
    })
}
