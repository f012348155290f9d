//! The newer bundle takes over, and then the older one again.

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

/// Which changes are crashed through one by one, separated by commas: their names, or `all`.
const CRASHED: &str = "WINDLASS_E2E_CHANGES";

/// How long an upgrade may take beside the time in which pods become ready, a canary's and a rollout's.
const LIMIT: Duration = Duration::from_secs(90);

/// How long the load goes on when an upgrade is done: whatever ends late has ended then.
pub(super) const AFTERWARDS: Duration = Duration::from_secs(6);

/// The versions of the older bundle.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The older bundle is installed, the newer one takes over, and the older one again: no call fails, and nothing waits for
/// ever.
pub(in super::super) async fn is_carried_through(
    cluster: &TestCluster,
    change: BundleChange,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let (older, newer) = (change.older(cluster)?, change.newer(cluster)?);
    let folder = cluster.operator.bundle_dir.join(&older);
    steps::install(&cluster.client, "sample", sample::NAMESPACE, &folder).await?;
    let load = traffic::start_at(cluster, traffic::NAMESPACE, &VERSIONS, Expectation::Admitted).await?;
    let (bursts, allowances) = (Bursts::start(cluster).await?, Allowances::start(cluster));
    load.at_least(100).await?;

    let mut outcome = UpgradeOutcome::default();
    let upgraded = set(cluster, "sample", &newer).await;
    outcome.went("the upgrade", upgraded, &load);
    if upgrade::serves(&sample::crd(cluster).await?, "v2") {
        let newest = traffic::start_at(cluster, "traffic-v2", &["v2"], Expectation::Admitted).await?;
        tokio::time::sleep(AFTERWARDS).await;
        outcome.sent("calls at v2", &newest.stop().await);
    } else {
        outcome.wrong("v2 is not served");
    }
    outcome.sent("calls after the upgrade", &load.lap());
    let back = set(cluster, "sample", &older).await;
    outcome.went("the way back", back, &load);
    tokio::time::sleep(AFTERWARDS).await;
    outcome.sent("calls after the way back", &load.lap());

    let report = load.stop().await;
    let (bursts, allowances) = (bursts.finish().await?, allowances.finish().await?);
    tracing::info!(
        ?change,
        requests = report.requests,
        failed = report.failed,
        a_second = VERSIONS
            .map(|version| format!("{version}: {:.1}", report.rate_at(version)))
            .join(", "),
        at_once = bursts.requests,
        failed_at_once = bursts.failures.len(),
        looks = allowances.looks,
        lacking = allowances.lacking.len(),
        "Sent"
    );
    outcome.listed("reads at once", bursts.requests, &bursts.failures);
    outcome.listed("looks at what pods may do", allowances.looks, &allowances.lacking);
    outcome.check()
}

/// The operator is killed at every write of an upgrade that changes everything, or of each that is asked for.
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

/// Gives a BundleDeployment another source, older or newer, and waits until that is installed.
pub(super) async fn set(cluster: &TestCluster, name: &str, folder: &str) -> anyhow::Result<()> {
    let patch = json!({"spec": {"allowDowngrade": true, "source": {"directory": {"path": folder}}}});
    let path = format!("{BUNDLE_DEPLOYMENTS}/{name}");
    succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
    ready(&cluster.client, name, LIMIT + 4 * ready_after()?).await?;
    Ok(())
}
