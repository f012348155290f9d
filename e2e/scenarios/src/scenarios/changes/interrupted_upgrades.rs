//! The source changes after the switch of traffic to the next revision, before the pods of the previous one
//! end.

use serde_json::{Value, json};

use super::{
    change::BundleChange,
    outcome::UpgradeOutcome,
    round_trip::{AFTERWARDS, set},
};
use crate::{
    load::Load,
    sample,
    scenarios::traffic,
    steps::{self, PATIENCE, check, get, succeed, until},
    test_cluster::TestCluster,
};

pub(in super::super) async fn a_source_changes_during_an_upgrade_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    cluster.bundle("sample.v2")?;
    let (older, slow) = (
        BundleChange::SlowPods.older(cluster)?,
        BundleChange::SlowPods.newer(cluster)?,
    );
    let load = install_under_load(cluster, &older).await?;

    let mut outcome = UpgradeOutcome::default();
    // The source changes to a third bundle, whose pods start slowly, then back before they are ready.
    for (first, then) in [("sample.v2", slow.as_str()), ("sample.v2", slow.as_str())] {
        wait_for_switch(cluster, first).await?;
        outcome.record_step(then, set(cluster, "sample", then).await, &load);
        tokio::time::sleep(AFTERWARDS).await;
        outcome.record_requests("calls afterwards", &load.lap());
    }
    outcome.record_served(&load.stop().await, &[false, true]);
    outcome.check()
}

/// Traffic returns to the pods of a Deployment that was about to be replaced.
pub(in super::super) async fn a_selector_is_reverted_during_an_upgrade_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let (older, newer) = (
        BundleChange::Selector.older(cluster)?,
        BundleChange::Selector.newer(cluster)?,
    );
    let load = install_under_load(cluster, &older).await?;
    let mut outcome = UpgradeOutcome::default();
    wait_for_switch(cluster, &newer).await?;
    outcome.record_step(&older, set(cluster, "sample", &older).await, &load);
    tokio::time::sleep(AFTERWARDS).await;
    outcome.record_requests("calls afterwards", &load.lap());
    outcome.record_served(&load.stop().await, &[false, true, false]);
    outcome.check()
}

/// `kubectl rollout restart` after the switch of traffic, before the new Deployment is available. `kubectl`
/// checks for a paused Deployment, which other clients may not do.
pub(in super::super) async fn pods_restart_during_an_upgrade_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let change = BundleChange::SlowPods;
    let (older, newer) = (change.older(cluster)?, change.newer(cluster)?);
    let load = install_under_load(cluster, &older).await?;
    let mut outcome = UpgradeOutcome::default();
    for source in [&newer, &older] {
        wait_for_switch(cluster, source).await?;
        let template = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": source}}});
        let restart = json!({"spec": {"template": template}});
        let restarted = succeed(&cluster.client, "PATCH", sample::DEPLOYMENT, Some(&restart)).await;
        outcome.record_step("the restart", restarted.map(drop), &load);
        outcome.record_step(source, set(cluster, "sample", source).await, &load);
        tokio::time::sleep(AFTERWARDS).await;
        outcome.record_requests("calls afterwards", &load.lap());
    }
    outcome.record_served(&load.stop().await, &[false, true, false]);
    outcome.check()
}

/// Installs the older bundle and starts calls of its webhooks.
async fn install_under_load(cluster: &TestCluster, older: &str) -> anyhow::Result<Load> {
    let folder = cluster.operator.bundle_dir.join(older);
    steps::install(&cluster.client, "sample", sample::NAMESPACE, &folder).await?;
    let load = traffic::start_at_with_newest(cluster).await?;
    load.at_least(100).await?;
    Ok(load)
}

/// Changes the source, and waits until webhooks call the new pods while the old ones still run.
async fn wait_for_switch(cluster: &TestCluster, source: &str) -> anyhow::Result<()> {
    let before = called_service(cluster).await?;
    sample::set_source(cluster, source).await?;
    until("webhooks call the next revision", 3 * PATIENCE, async || {
        let called = called_service(cluster).await?;
        let deployment = get(&cluster.client, sample::DEPLOYMENT)
            .await?
            .unwrap_or_default();
        let is_held = deployment["spec"]["minReadySeconds"].as_i64() > Some(3600);
        Ok(check(called != before && is_held, || {
            format!(
                "webhooks call {called}; {}",
                deployment["spec"]["minReadySeconds"]
            )
        }))
    })
    .await
}

/// Returns the Service that the conversion calls.
async fn called_service(cluster: &TestCluster) -> anyhow::Result<Value> {
    let crd = sample::crd(cluster).await?;
    Ok(crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"].clone())
}
