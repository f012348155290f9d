//! The operator is killed before and after every write of an operation, and restarted.
//!
//! Each run of the operator is cut off at its first write: before the write reaches the API server, or after
//! it succeeded but before the operator receives the response. So each write is met twice, and one operation
//! goes through all positions. With [`WRITES`], each run makes some writes first, which covers fewer
//! positions in less time. The end must equal that of an undisturbed operation: the same objects, no
//! duplicates, none left over.

use std::time::{Duration, Instant};

use super::operation::{self, AdminOperation};
use crate::{
    proxy::Cut,
    snapshot::Snapshot,
    steps::{self, check, until},
    test_cluster::TestCluster,
};

/// The variable with the number of writes in each run of the operator: above 1, each test covers other
/// positions.
const WRITES: &str = "WINDLASS_E2E_WRITES";

/// A limit above the number of positions of every operation.
const MOST_LIVES: usize = 400;

/// The interval of the checks for completion during a run.
const LOOK: Duration = Duration::from_millis(400);

/// The time limit of a run without writes. A namespace controller that could not empty a namespace waits up
/// to a minute before it tries again.
const LONGEST_LIFE: Duration = Duration::from_secs(120);

/// Runs `operation` undisturbed, then killed at every position, and compares the results.
pub(super) async fn resumes(cluster: &TestCluster, operation: AdminOperation) -> anyhow::Result<()> {
    let empty = cluster.inventory().await?;
    let (end, writes) = run_undisturbed(cluster, operation).await?;
    if !operation.is_repeatable() {
        empty.restore(&cluster.client).await?;
        let running = cluster.operator.start()?;
        operation.prepare(cluster).await?;
        running.kill().await?;
    }
    let users = operation.start_clients(cluster).await?;
    let started = Instant::now();
    let positions = killed_at_every_write(cluster, operation, &end).await?;
    users.finish().await?;
    tracing::info!(
        ?operation,
        positions = positions.len(),
        undisturbed_writes = writes,
        objects = end.len(),
        seconds = started.elapsed().as_secs_f32(),
        "Killed before and after every write; the result equals an undisturbed run"
    );
    Ok(())
}

/// Returns the result of the undisturbed operation and the number of its writes.
async fn run_undisturbed(
    cluster: &TestCluster,
    operation: AdminOperation,
) -> anyhow::Result<(Snapshot, u64)> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let running = operator.start()?;
    operation.prepare(cluster).await?;
    operation::wait_until_unchanged(cluster).await?;
    let writes = proxy.writes();
    let before = operation.start(cluster).await?;
    until(&format!("{operation:?} is complete"), LONGEST_LIFE, async || {
        let done = operation.is_done(cluster, &before).await?;
        Ok(check(done, || "not done".to_owned()))
    })
    .await?;
    let end = operation::wait_until_unchanged(cluster).await?;
    operation.check(cluster, &before).await?;
    let writes = proxy.writes() - writes;
    operation.undo(cluster).await?;
    running.kill().await?;
    Ok((end, writes))
}

/// Restarts the operator repeatedly, cutting off each run alternately before and after its first write, until
/// the cluster equals `end` and the operator writes nothing. Returns the positions.
async fn killed_at_every_write(
    cluster: &TestCluster,
    operation: AdminOperation,
    end: &Snapshot,
) -> anyhow::Result<Vec<String>> {
    let each = steps::number_in(WRITES, 1)?.max(1);
    let first = 1 + u64::from(std::process::id()) % each;
    let before = operation.start(cluster).await?;
    let mut positions = Vec::new();
    for life in 0..MOST_LIVES {
        let cut = if life % 2 == 0 { Cut::Before } else { Cut::After };
        // Each run has its own proxy, so that late requests of a killed run reach no server.
        let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
        proxy.cut_at(if life == 0 { first } else { each }, cut);
        let running = operator.start()?;
        let ended = tokio::select! {
            () = proxy.closed() => None,
            ended = wait_for_end(cluster, operation, &before, end) => Some(ended),
        };
        if let Some(ended) = ended {
            ended?;
            // A write after completion is one more position.
            if tokio::time::timeout(operation::QUIET, proxy.closed())
                .await
                .is_err()
            {
                operation.check(cluster, &before).await?;
                running.kill().await?;
                return Ok(positions);
            }
        }
        running.kill().await?;
        positions.push(format!("{cut:?} {}", proxy.log().join(", ")));
    }
    let last = &positions[positions.len().saturating_sub(6)..];
    anyhow::bail!("not complete after {MOST_LIVES} runs; the last cuts: {last:?}")
}

/// Waits until the operation is complete and the cluster equals `end`. Most runs end before the first check,
/// and frequent checks would slow them down.
async fn wait_for_end(
    cluster: &TestCluster,
    operation: AdminOperation,
    before: &operation::Before,
    end: &Snapshot,
) -> anyhow::Result<()> {
    until(&format!("{operation:?} is complete"), LONGEST_LIFE, async || {
        tokio::time::sleep(LOOK).await;
        let done = operation.is_done(cluster, before).await?;
        Ok(check(done, || "not done".to_owned()))
    })
    .await?;
    operation::wait_for_state(cluster, end).await
}
