//! An upgrade keeps what an admin has added to a webhook.

use anyhow::Context;
use serde_json::{Value, json};

use super::{change::BundleChange, round_trip::set};
use crate::{
    request::text,
    sample,
    steps::{self, VALIDATING, list, succeed},
    test_cluster::TestCluster,
};

/// The admin exempts a namespace; then the Deployment is renamed, and with it the called Service and its CA.
pub(in super::super) async fn an_admins_match_condition_survives_a_renamed_deployment(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let change = BundleChange::DeploymentName;
    let (older, newer) = (change.older(cluster)?, change.newer(cluster)?);
    let folder = cluster.operator.bundle_dir.join(&older);
    steps::install(&cluster.client, "sample", sample::NAMESPACE, &folder).await?;

    let before = webhook(cluster).await?;
    let name = text(&before, "/metadata/name");
    let condition = json!({"name": "not-there", "expression": "request.namespace != 'exempt'"});
    let mut webhooks = before["webhooks"].clone();
    webhooks[0]["matchConditions"] = json!([condition]);
    let path = format!("{VALIDATING}/{name}?fieldManager=kubectl-edit");
    succeed(
        &cluster.client,
        "PATCH",
        &path,
        Some(&json!({"webhooks": webhooks})),
    )
    .await?;
    for source in [&newer, &older] {
        set(cluster, "sample", source).await?;
        let after = webhook(cluster).await?;
        let webhook = &after["webhooks"][0];
        anyhow::ensure!(
            webhook["matchConditions"] == json!([condition]),
            "the match condition was removed: {after}"
        );
        let called = text(webhook, "/clientConfig/service/name");
        let is_renamed = called.starts_with("other-operator");
        anyhow::ensure!(is_renamed == (source == &newer), "it calls {called}");
    }
    Ok(())
}

async fn webhook(cluster: &TestCluster) -> anyhow::Result<Value> {
    let webhooks = list(&cluster.client, VALIDATING).await?;
    let ours = |webhook: &Value| text(webhook, "/metadata/name").contains("vwidget");
    webhooks.into_iter().find(ours).context("no webhook of widgets")
}
