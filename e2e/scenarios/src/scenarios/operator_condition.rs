//! An operator that reports that it cannot be upgraded now.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::time::sleep;
use windlass::commands::manifests;

use super::{foreign, upgrade};
use crate::{
    sample,
    steps::{PATIENCE, check, get, gone, ready, succeed, until},
    test_cluster::TestCluster,
};

const OLDER: &str = "/apis/operators.coreos.com/v2/namespaces/sample-system/operatorconditions/sample.v1";
const NEWER: &str = "/apis/operators.coreos.com/v2/namespaces/sample-system/operatorconditions/sample.v2";
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/sample-system/roles/sample.v1";

pub(super) async fn an_upgrade_waits_until_the_operator_condition_allows_or_overrides_it(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    anyhow::ensure!(
        get(&cluster.client, ROLE).await?.is_none(),
        "there is a Role for a kind that the cluster does not serve"
    );
    foreign::define(&cluster.client, &manifests::operator_condition_crd()).await?;
    let before = wait_for(cluster, OLDER).await?;
    // The pause makes sure that no reconciliation is running. The watch of the new kind may not be complete
    // yet.
    sleep(Duration::from_millis(500)).await;
    succeed(&cluster.client, "DELETE", OLDER, None).await?;
    until(
        "the deleted OperatorCondition is recreated",
        PATIENCE,
        async || {
            let live = get(&cluster.client, OLDER).await?.unwrap_or_default();
            let uid = &live["metadata"]["uid"];
            Ok(check(!uid.is_null() && *uid != before["metadata"]["uid"], || {
                live.to_string()
            }))
        },
    )
    .await?;
    wait_for(cluster, ROLE).await?;

    let conditions = |status: &str| {
        json!([{
            "type": "Upgradeable", "status": status, "reason": "Migrating", "message": "3 of 4 shards are migrated",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    };
    let reported = json!({"spec": {"conditions": conditions("False")}});
    succeed(&cluster.client, "PATCH", OLDER, Some(&reported)).await?;
    cluster.bundle("sample.v2")?;
    sample::set_source(cluster, "sample.v2").await?;
    let words = "sample.v1 reports that it cannot be upgraded now (Migrating: 3 of 4 shards are migrated)";
    upgrade::wait_until_stopped(cluster, "NotUpgradeable", words).await?;
    let kept = wait_for(cluster, OLDER).await?;
    anyhow::ensure!(
        kept["spec"]["conditions"] == reported["spec"]["conditions"],
        "{kept}"
    );

    let overridden = json!({"spec": {"overrides": conditions("True")}});
    succeed(&cluster.client, "PATCH", OLDER, Some(&overridden)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    wait_for(cluster, NEWER).await?;
    for path in [OLDER, ROLE] {
        gone(&cluster.client, path).await?;
    }
    Ok(())
}

async fn wait_for(cluster: &TestCluster, path: &str) -> anyhow::Result<Value> {
    until(&format!("{path} exists"), PATIENCE, async || {
        Ok(check(get(&cluster.client, path).await?.is_some(), String::new))
    })
    .await?;
    get(&cluster.client, path).await?.context("it was deleted again")
}
