//! Objects of other software: minimal CRDs that a plain cluster lacks, and trust bundles.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    request::text,
    steps::{CRDS, PATIENCE, get, succeed, until},
};

/// A CustomResourceDefinition without validation.
pub(super) fn crd(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Value {
    let (group, name) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut metadata = json!({"name": format!("{plural}.{group}")});
    if group.ends_with(".k8s.io") {
        // Without the annotation, the API server treats the group as a protected one.
        metadata["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for a test"});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata,
        "spec": {
            "group": group, "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [version(name, true)],
        },
    })
}

/// Creates a CustomResourceDefinition and waits until it is served.
pub(super) async fn define(client: &Client, crd: &Value) -> anyhow::Result<()> {
    succeed(client, "POST", CRDS, Some(crd)).await?;
    let part = |pointer| text(crd, pointer);
    let collection = format!(
        "/apis/{}/{}/{}",
        part("/spec/group"),
        part("/spec/versions/0/name"),
        part("/spec/names/plural")
    );
    until(&format!("{collection} is served"), PATIENCE, async || {
        let found = get(client, &collection).await?;
        Ok(found.map(drop).ok_or_else(|| "404".to_owned()))
    })
    .await
}

/// A valid trust bundle of an unrelated CA, in base64.
pub(super) fn trust_bundle() -> anyhow::Result<String> {
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters
        .distinguished_name
        .push(rcgen::DnType::CommonName, "a stranger");
    let certificate = parameters.self_signed(&rcgen::KeyPair::generate()?)?;
    Ok(STANDARD.encode(certificate.pem()))
}

/// A version of a CustomResourceDefinition without validation.
pub(super) fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage,
           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
}

/// Returns the certificates in PEM text, without their order.
pub(super) fn certificates(pem: &[u8]) -> BTreeSet<String> {
    let pem = String::from_utf8_lossy(pem);
    let blocks = pem.split_inclusive("-----END CERTIFICATE-----").map(str::trim);
    blocks
        .filter(|block| !block.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the certificates in a base64 CA bundle, without their order.
pub(super) fn certificates_of_bundle(bundle: &str) -> BTreeSet<String> {
    certificates(&STANDARD.decode(bundle).unwrap_or_default())
}
