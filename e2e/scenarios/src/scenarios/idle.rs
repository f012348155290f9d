//! Without changes, the operator writes nothing.

use std::time::Duration;

use crate::{
    proxy::Proxy,
    sample,
    steps::{PATIENCE, check, ready, until},
    test_cluster::TestCluster,
};

/// How long the operator must write nothing until the cluster counts as settled.
const QUIET: Duration = Duration::from_secs(3);

/// How long the settled cluster is observed.
const IDLE: Duration = Duration::from_secs(10);

pub(super) async fn nothing_is_written_when_nothing_changes(cluster: &TestCluster) -> anyhow::Result<()> {
    nothing_is_written_after(cluster, &[]).await
}

pub(super) async fn nothing_is_written_after_an_upgrade(cluster: &TestCluster) -> anyhow::Result<()> {
    nothing_is_written_after(cluster, &["sample.v2"]).await
}

/// Installs the older sample, upgrades it, waits, and restarts the operator.
async fn nothing_is_written_after(cluster: &TestCluster, upgrades: &[&str]) -> anyhow::Result<()> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let running = operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    for bundle in upgrades {
        cluster.bundle(bundle)?;
        sample::set_source(cluster, bundle).await?;
        ready(&cluster.client, "sample", PATIENCE).await?;
    }
    wait_until_idle(&proxy).await?;
    let before = proxy.writes();
    tokio::time::sleep(IDLE).await;
    anyhow::ensure!(
        proxy.writes() == before,
        "writes while idle: {:?}",
        &proxy.log()[count(before)..]
    );
    running.kill().await?;
    let _running = operator.start()?;
    sample::settled(cluster).await?;
    tokio::time::sleep(IDLE).await;
    anyhow::ensure!(
        proxy.writes() == before,
        "writes after a restart: {:?}",
        &proxy.log()[count(before)..]
    );
    Ok(())
}

/// Waits until the operator has written nothing for a while.
pub(super) async fn wait_until_idle(proxy: &Proxy) -> anyhow::Result<()> {
    until("the operator stops writing", PATIENCE, async || {
        let before = proxy.writes();
        tokio::time::sleep(QUIET).await;
        Ok(check(proxy.writes() == before, || {
            format!("{} writes", proxy.writes())
        }))
    })
    .await
}

fn count(writes: u64) -> usize {
    usize::try_from(writes).unwrap_or(usize::MAX)
}
