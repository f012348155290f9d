//! An operator that says that it cannot be upgraded now.

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

pub(super) async fn an_operator_that_cannot_be_upgraded_is_not_until_it_can_or_is_overridden(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    anyhow::ensure!(
        get(&cluster.client, ROLE).await?.is_none(),
        "there is a role for what the cluster does not serve"
    );
    foreign::define(&cluster.client, &manifests::operator_condition_crd()).await?;
    let before = comes(cluster, OLDER).await?;
    // Before a watch of what the cluster has only just begun to serve has listed it, and when nobody is at work on it.
    sleep(Duration::from_millis(500)).await;
    succeed(&cluster.client, "DELETE", OLDER, None).await?;
    until("the deleted one is back", PATIENCE, async || {
        let there = get(&cluster.client, OLDER).await?.unwrap_or_default();
        let uid = &there["metadata"]["uid"];
        Ok(check(!uid.is_null() && *uid != before["metadata"]["uid"], || {
            there.to_string()
        }))
    })
    .await?;
    comes(cluster, ROLE).await?;

    let says = |status: &str| {
        json!([{
            "type": "Upgradeable", "status": status, "reason": "Migrating", "message": "3 of 4 shards are migrated",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    };
    let said = json!({"spec": {"conditions": says("False")}});
    succeed(&cluster.client, "PATCH", OLDER, Some(&said)).await?;
    cluster.bundle("sample.v2")?;
    sample::set_source(cluster, "sample.v2").await?;
    let words = "sample.v1 reports that it cannot be upgraded now (Migrating: 3 of 4 shards are migrated)";
    upgrade::stopped(cluster, "NotUpgradeable", words).await?;
    let kept = comes(cluster, OLDER).await?;
    anyhow::ensure!(kept["spec"]["conditions"] == said["spec"]["conditions"], "{kept}");

    let overridden = json!({"spec": {"overrides": says("True")}});
    succeed(&cluster.client, "PATCH", OLDER, Some(&overridden)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    comes(cluster, NEWER).await?;
    for path in [OLDER, ROLE] {
        gone(&cluster.client, path).await?;
    }
    Ok(())
}

async fn comes(cluster: &TestCluster, path: &str) -> anyhow::Result<Value> {
    until(&format!("{path} is there"), PATIENCE, async || {
        Ok(check(get(&cluster.client, path).await?.is_some(), String::new))
    })
    .await?;
    get(&cluster.client, path).await?.context("it is gone again")
}
