//! Applies the output of `windlass manifests`.

use kube::Client;
use serde_json::Value;

use crate::{
    request,
    steps::{self, PATIENCE, check, get, until},
};

/// Objects about pods of the operator, which runs as a process here, and the guard: scenarios of the guard
/// apply it.
const LEFT_OUT: [&str; 6] = [
    "Deployment",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PriorityClass",
    "Service",
    "ValidatingWebhookConfiguration",
];

/// Applies the output of `windlass manifests` except [`LEFT_OUT`].
pub(super) async fn apply_all(client: &Client) -> anyhow::Result<()> {
    for object in windlass::commands::manifests::objects()? {
        if LEFT_OUT.iter().all(|kind| object["kind"] != *kind) {
            apply(client, &object).await?;
        }
    }
    let crd = |name: &str| format!("{}/{name}.windlass.dev", steps::CRDS);
    for name in ["bundledeployments", "servingcertificates"] {
        until(&format!("{name} are served"), PATIENCE, async || {
            let conditions = get(client, &crd(name))
                .await?
                .map(|crd| steps::conditions(&crd))
                .unwrap_or_default();
            Ok(check(conditions.contains("Established=True"), || conditions))
        })
        .await?;
    }
    Ok(())
}

/// Creates an object of a kind in the manifests.
pub(crate) async fn apply(client: &Client, object: &Value) -> anyhow::Result<()> {
    steps::succeed(client, "POST", &collection_of(object), Some(object)).await?;
    Ok(())
}

/// The path of an object of a kind in the manifests.
pub(crate) fn path_of(object: &Value) -> String {
    format!(
        "{}/{}",
        collection_of(object),
        request::text(object, "/metadata/name")
    )
}

/// The collection of an object of a kind in the manifests.
pub(crate) fn collection_of(object: &Value) -> String {
    let (api_version, kind) = (
        request::text(object, "/apiVersion"),
        request::text(object, "/kind"),
    );
    let root = if api_version == "v1" {
        "/api/v1".to_owned()
    } else {
        format!("/apis/{api_version}")
    };
    let singular = kind.to_lowercase();
    let plural = match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let folder = namespace
        .map(|namespace| format!("/namespaces/{namespace}"))
        .unwrap_or_default();
    format!("{root}{folder}/{plural}")
}
