//! The source changes while webhooks call pods of the next revision already, and those of the one before are still there.

use serde_json::{Value, json};

use super::{
    change::BundleChange,
    outcome::UpgradeOutcome,
    there_and_back::{AFTERWARDS, set},
};
use crate::{
    load::Load,
    resource::Expectation,
    sample,
    scenarios::traffic,
    steps::{self, PATIENCE, check, get, succeed, until},
    test_cluster::TestCluster,
};

pub(in super::super) async fn a_source_that_changes_midway_costs_no_call(
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
    // To a third one, whose pods need a while; then to another one, and back before that is over.
    for (first, then) in [("sample.v2", slow.as_str()), ("sample.v2", slow.as_str())] {
        begin(cluster, first).await?;
        outcome.went(then, set(cluster, "sample", then).await, &load);
        tokio::time::sleep(AFTERWARDS).await;
        outcome.sent("calls afterwards", &load.lap());
    }
    load.stop().await;
    outcome.check()
}

/// The pods that webhooks go back to were left behind when their Deployment was replaced.
pub(in super::super) async fn a_source_that_goes_back_to_another_selector_costs_no_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let (older, newer) = (
        BundleChange::Selector.older(cluster)?,
        BundleChange::Selector.newer(cluster)?,
    );
    let load = install_under_load(cluster, &older).await?;
    let mut outcome = UpgradeOutcome::default();
    begin(cluster, &newer).await?;
    outcome.went(&older, set(cluster, "sample", &older).await, &load);
    tokio::time::sleep(AFTERWARDS).await;
    outcome.sent("calls afterwards", &load.lap());
    load.stop().await;
    outcome.check()
}

/// Somebody runs `kubectl rollout restart` while webhooks call pods of the new revision, which never counted as available: its
/// check for a paused Deployment is not everybody's.
pub(in super::super) async fn a_restart_midway_costs_no_call(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let change = BundleChange::SlowPods;
    let (older, newer) = (change.older(cluster)?, change.newer(cluster)?);
    let load = install_under_load(cluster, &older).await?;
    let mut outcome = UpgradeOutcome::default();
    for source in [&newer, &older] {
        begin(cluster, source).await?;
        let template = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": source}}});
        let restart = json!({"spec": {"template": template}});
        let restarted = succeed(&cluster.client, "PATCH", sample::DEPLOYMENT, Some(&restart)).await;
        outcome.went("the restart", restarted.map(drop), &load);
        outcome.went(source, set(cluster, "sample", source).await, &load);
        tokio::time::sleep(AFTERWARDS).await;
        outcome.sent("calls afterwards", &load.lap());
    }
    load.stop().await;
    outcome.check()
}

/// Installs the older bundle, and calls its webhooks from then on.
async fn install_under_load(cluster: &TestCluster, older: &str) -> anyhow::Result<Load> {
    let folder = cluster.operator.bundle_dir.join(older);
    steps::install(&cluster.client, "sample", sample::NAMESPACE, &folder).await?;
    let versions = ["v1", "v1beta1"];
    let load = traffic::start_at(cluster, traffic::NAMESPACE, &versions, Expectation::Admitted).await?;
    load.at_least(100).await?;
    Ok(load)
}

/// Changes the source, and waits until webhooks call pods of the new one while those of the old one are still there.
async fn begin(cluster: &TestCluster, source: &str) -> anyhow::Result<()> {
    let before = called(cluster).await?;
    sample::set_source(cluster, source).await?;
    until("webhooks call the next revision", 3 * PATIENCE, async || {
        let called = called(cluster).await?;
        let deployment = get(&cluster.client, sample::DEPLOYMENT)
            .await?
            .unwrap_or_default();
        let is_held = deployment["spec"]["minReadySeconds"].as_i64() > Some(3600);
        Ok(check(called != before && is_held, || {
            format!("{called} is called; {}", deployment["spec"]["minReadySeconds"])
        }))
    })
    .await
}

/// The Service that conversions go to.
async fn called(cluster: &TestCluster) -> anyhow::Result<Value> {
    let crd = sample::crd(cluster).await?;
    Ok(crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"].clone())
}
