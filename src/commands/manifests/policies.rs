//! What serves policies: their kinds, and processes of their own.

use serde_json::{Value, json};
use windlass_object::names;
use windlass_operator::admission::AdmissionService;

use super::{
    deployment,
    document::{Document, NAMESPACE},
    guard::PORT_NAME,
    rbac, user_facing_roles,
};

/// The name of everything in them.
const NAME: &str = AdmissionService::POLICIES.name;

/// What the file is for, and how it is taken away.
const COMMENT: &str = "Optional: policies override and validate what is written to the cluster. Apply this file to turn them on.
To turn them off, first take away the webhook configurations, then what answers them:
  windlass policy disarm
  kubectl delete deployment windlass-policies -n windlass-system
Deleting the CustomResourceDefinitions deletes all policies.";

/// Where the certificate comes from.
const SERVICE: &str = "Every replica answers here. Windlass issues and rotates this certificate, and keeps the configurations that lead here.";

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
