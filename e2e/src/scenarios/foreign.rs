//! Kinds of others that a plain cluster does not serve, as far as scenarios need them.

use serde_json::{Value, json};

use crate::{
    bed::Bed,
    request::text,
    steps::{CRDS, PATIENCE, get, succeed, until},
};

/// A CustomResourceDefinition for a kind that takes any object.
pub(super) fn definition(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Value {
    let (group, name) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut metadata = json!({"name": format!("{plural}.{group}")});
    if group.ends_with(".k8s.io") {
        // Without it the API server takes the group for one that it protects.
        metadata["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, a stub"});
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
pub(super) async fn define(bed: &Bed, definition: &Value) -> anyhow::Result<()> {
    succeed(&bed.client, "POST", CRDS, Some(definition)).await?;
    let part = |pointer| text(definition, pointer);
    let collection = format!(
        "/apis/{}/{}/{}",
        part("/spec/group"),
        part("/spec/versions/0/name"),
        part("/spec/names/plural")
    );
    until(&format!("{collection} is served"), PATIENCE, async || {
        let found = get(&bed.client, &collection).await?;
        Ok(found.map(drop).ok_or_else(|| "404".to_owned()))
    })
    .await
}

/// A version of a CustomResourceDefinition that takes any object.
pub(super) fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage,
           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
}
