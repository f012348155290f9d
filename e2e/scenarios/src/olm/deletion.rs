//! OLM's reaction to a deleted ClusterServiceVersion: the finalizer, then the event handler.

use kube::Client;
use serde_json::{Value, json};

use super::{
    deployment::webhooks,
    objects::{collection, path, selector},
};
use crate::{
    request::{self, text},
    steps::{get, list, succeed},
};

/// The finalizer of OLM.
pub(super) const FINALIZER: &str = "operators.coreos.com/csv-cleanup";

/// The kinds that the finalizer deletes by the owner's labels.
const CLEANED: [&str; 4] = [
    "ClusterRoleBinding",
    "ClusterRole",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Runs `processFinalizer` and returns the deleted objects.
pub(super) async fn finalize(client: &Client, csv: &Value) -> anyhow::Result<Vec<String>> {
    let finalizers = csv["metadata"]["finalizers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !finalizers.contains(&json!(FINALIZER)) {
        return Ok(Vec::new());
    }
    let mut deleted = Vec::new();
    for kind in CLEANED {
        for object in list(client, &format!("{}{}", collection(kind, ""), selector(csv))).await? {
            let name = text(&object, "/metadata/name");
            succeed(client, "DELETE", &path(kind, "", name), None).await?;
            deleted.push(format!("finalizer deleted {kind} {name}"));
        }
    }
    let mut left = csv.clone();
    left["metadata"]["finalizers"] = finalizers.into_iter().filter(|one| one != FINALIZER).collect();
    let path = format!(
        "{}/{}",
        super::csvs(text(csv, "/metadata/namespace")),
        text(csv, "/metadata/name")
    );
    // A changed object is processed again.
    request::send(client, "PUT", &path, Some(&left)).await?;
    deleted.push("finalizer is done".to_owned());
    Ok(deleted)
}

/// Runs `handleClusterServiceVersionDeletion` on the last known object. Errors are not retried.
pub(super) async fn handle(client: &Client, csv: &Value) -> anyhow::Result<Vec<String>> {
    let annotation = |name: &str| csv["metadata"]["annotations"].get(name);
    if annotation("olm.targetNamespaces").is_none() || annotation("olm.operatorNamespace").is_none() {
        return Ok(vec!["deletion: not of an OperatorGroup".to_owned()]);
    }
    let mut done = vec!["deletion is handled".to_owned()];
    for webhook in webhooks(csv)
        .iter()
        .filter(|webhook| text(webhook, "/type") == "ConversionWebhook")
    {
        for name in webhook["conversionCRDs"].as_array().into_iter().flatten() {
            let path = path("CustomResourceDefinition", "", name.as_str().unwrap_or_default());
            let Some(mut crd) = get(client, &path).await? else {
                continue;
            };
            crd["spec"]["conversion"] = json!({"strategy": "None"});
            let answer = request::send(client, "PUT", &path, Some(&crd)).await?;
            done.push(format!("conversion of {name} reset: HTTP {}", answer.code));
        }
    }
    Ok(done)
}
