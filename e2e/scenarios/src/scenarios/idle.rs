//! Nothing changed: nothing written.

use std::time::Duration;

use crate::{
    proxy::Proxy,
    sample,
    steps::{PATIENCE, until},
    test_cluster::TestCluster,
};

/// How long no write may come before the bed counts as settled.
const QUIET: Duration = Duration::from_secs(3);

/// How long it is watched then.
const IDLE: Duration = Duration::from_secs(10);

pub(super) async fn nothing_is_written_when_nothing_changes(bed: &TestCluster) -> anyhow::Result<()> {
    let (operator, gate) = bed.gated(&bed.operator).await?;
    let running = operator.start()?;
    sample::install(bed, "sample.v1").await?;
    settled(&gate).await?;
    let before = gate.writes();
    tokio::time::sleep(IDLE).await;
    anyhow::ensure!(
        gate.writes() == before,
        "written while idle: {:?}",
        &gate.log()[count(before)..]
    );
    running.kill().await?;
    let _running = operator.start()?;
    sample::settled(bed).await?;
    tokio::time::sleep(IDLE).await;
    anyhow::ensure!(
        gate.writes() == before,
        "written after a restart: {:?}",
        &gate.log()[count(before)..]
    );
    Ok(())
}

async fn settled(gate: &Proxy) -> anyhow::Result<()> {
    until("the operator stops writing", PATIENCE, async || {
        let before = gate.writes();
        tokio::time::sleep(QUIET).await;
        Ok(if gate.writes() == before {
            Ok(())
        } else {
            Err(format!("{} writes", gate.writes()))
        })
    })
    .await
}

fn count(writes: u64) -> usize {
    usize::try_from(writes).unwrap_or(usize::MAX)
}
