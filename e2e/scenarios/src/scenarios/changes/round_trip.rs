//! An upgrade to the newer bundle, and a downgrade to the older one.

use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::{allowances::Allowances, bursts::Bursts, change::BundleChange, outcome::UpgradeOutcome};
use crate::{
    resource::Expectation,
    sample,
    scenarios::{crash, operation::AdminOperation, traffic, upgrade},
    steps::{self, BUNDLE_DEPLOYMENTS, ready, succeed},
    test_cluster::{TestCluster, ready_after},
};

/// The variable with the names of the changes to crash at every write, separated by commas, or `all`.
const CRASHED: &str = "WINDLASS_E2E_CHANGES";

/// The time limit of an upgrade, in addition to the time in which the canary's and the rollout's pods become
/// ready.
const LIMIT: Duration = Duration::from_secs(90);

/// How long the load continues after an upgrade, so that pods which terminate late are covered.
pub(super) const AFTERWARDS: Duration = Duration::from_secs(6);

/// Installs the older bundle, upgrades it and downgrades it again: no call fails, and each step ends in time.
pub(in super::super) async fn upgrades_and_downgrades(
    cluster: &TestCluster,
    change: BundleChange,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let (older, newer) = (change.older(cluster)?, change.newer(cluster)?);
    let folder = cluster.operator.bundle_dir.join(&older);
    steps::install(&cluster.client, "sample", sample::NAMESPACE, &folder).await?;
    let load = traffic::start_at_with_newest(cluster).await?;
    let (bursts, allowances) = (Bursts::start(cluster).await?, Allowances::start(cluster));
    load.at_least(100).await?;

    let mut outcome = UpgradeOutcome::default();
    let upgraded = set(cluster, "sample", &newer).await;
    outcome.record_step("the upgrade", upgraded, &load);
    if upgrade::serves(&sample::crd(cluster).await?, "v2") {
        let newest = traffic::start_at(cluster, "traffic-v2", &["v2"], Expectation::Admitted).await?;
        tokio::time::sleep(AFTERWARDS).await;
        outcome.record_requests("calls at v2", &newest.stop().await);
    } else {
        outcome.record_problem("v2 is not served");
    }
    outcome.record_requests("calls after the upgrade", &load.lap());
    let back = set(cluster, "sample", &older).await;
    outcome.record_step("the downgrade", back, &load);
    tokio::time::sleep(AFTERWARDS).await;
    outcome.record_requests("calls after the downgrade", &load.lap());

    let report = load.stop().await;
    let (bursts, allowances) = (bursts.finish().await?, allowances.finish().await?);
    tracing::info!(
        ?change,
        requests = report.requests,
        failed = report.failed,
        a_second = traffic::COMMON
            .map(|version| format!("{version}: {:.1}", report.rate_at(version)))
            .join(", "),
        at_once = bursts.requests,
        failed_at_once = bursts.failures.len(),
        looks = allowances.looks,
        lacking = allowances.lacking.len(),
        "Sent"
    );
    outcome.record_served(&report, &[false, true, false]);
    outcome.record_failures("concurrent reads", bursts.requests, &bursts.failures);
    outcome.record_failures(
        "checks of the pods' rights",
        allowances.looks,
        &allowances.lacking,
    );
    outcome.check()
}

/// Kills the operator at every write of an upgrade with all changes, or of each upgrade that the variable
/// names.
pub(in super::super) async fn an_upgrade_that_changes_everything_resumes_from_every_write(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let asked = std::env::var(CRASHED).unwrap_or_else(|_| format!("{:?}", BundleChange::Everything));
    let is_asked = |change: &BundleChange| {
        let mut names = asked.split(',');
        names.any(|name| name == "all" || name == format!("{change:?}"))
    };
    let changes = BundleChange::EACH.into_iter().chain([BundleChange::Everything]);
    for change in changes.filter(is_asked) {
        let empty = cluster.inventory().await?;
        let upgrade = AdminOperation::Change(change);
        crash::resumes(cluster, upgrade)
            .await
            .with_context(|| format!("{change:?}"))?;
        let running = cluster.operator.start()?;
        upgrade.undo(cluster).await?;
        running.kill().await?;
        empty.restore(&cluster.client).await?;
    }
    Ok(())
}

/// Changes the source of a BundleDeployment, and waits until that bundle is installed.
pub(super) async fn set(cluster: &TestCluster, name: &str, folder: &str) -> anyhow::Result<()> {
    let patch = json!({"spec": {"allowDowngrade": true, "source": {"directory": {"path": folder}}}});
    let path = format!("{BUNDLE_DEPLOYMENTS}/{name}");
    succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
    ready(&cluster.client, name, LIMIT + 4 * ready_after()?).await?;
    Ok(())
}
