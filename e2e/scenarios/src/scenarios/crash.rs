//! The operator is killed before and after every single write of an operation, and started again.
//!
//! Each life of the operator is cut off at its first write: before it reaches the API server, or after it was carried
//! out and before the operator hears of it. So each write is met twice, and one operation goes through every position
//! there is; a run that is to be short lets each life write some times first, and goes through some of them. It must end as one that nobody disturbed: the same objects, none twice, none left over.

use std::time::{Duration, Instant};

use super::operation::{self, AdminOperation};
use crate::{
    proxy::Cut,
    snapshot::Snapshot,
    steps::{self, check, until},
    test_cluster::TestCluster,
};

/// Set to how many writes the operator makes in each of its lives: above 1, each run goes through other positions.
const WRITES: &str = "WINDLASS_E2E_WRITES";

/// More lives than any operation has positions.
const MOST_LIVES: usize = 400;

/// How often a life is asked whether everything is done.
const LOOK: Duration = Duration::from_millis(400);

/// How long a life may last that neither writes nor finds everything done: a namespace controller that could not empty a
/// namespace tries again after up to a minute.
const LONGEST_LIFE: Duration = Duration::from_secs(120);

/// Carries `operation` out undisturbed, and then killed at every position: it must end the same.
pub(super) async fn resumes(cluster: &TestCluster, operation: AdminOperation) -> anyhow::Result<()> {
    let empty = cluster.inventory().await?;
    let (end, writes) = undisturbed(cluster, operation).await?;
    if !operation.is_repeatable() {
        empty.restore(&cluster.client).await?;
        let running = cluster.operator.start()?;
        operation.prepare(cluster).await?;
        running.kill().await?;
    }
    let users = operation.users(cluster).await?;
    let started = Instant::now();
    let positions = killed_at_every_write(cluster, operation, &end).await?;
    users.finish().await?;
    tracing::info!(
        ?operation,
        positions = positions.len(),
        undisturbed_writes = writes,
        objects = end.len(),
        seconds = started.elapsed().as_secs_f32(),
        "Killed before and after every write; it ended as if undisturbed"
    );
    Ok(())
}

/// How the operation ends when nobody disturbs it, and in how many writes.
async fn undisturbed(cluster: &TestCluster, operation: AdminOperation) -> anyhow::Result<(Snapshot, u64)> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let running = operator.start()?;
    operation.prepare(cluster).await?;
    operation::settled(cluster).await?;
    let writes = proxy.writes();
    let before = operation.ask(cluster).await?;
    until(&format!("{operation:?} is done"), LONGEST_LIFE, async || {
        let done = operation.is_done(cluster, &before).await?;
        Ok(check(done, || "not done".to_owned()))
    })
    .await?;
    let end = operation::settled(cluster).await?;
    operation.check(cluster, &before).await?;
    let writes = proxy.writes() - writes;
    operation.undo(cluster).await?;
    running.kill().await?;
    Ok((end, writes))
}

/// Starts the operator again and again, cutting each life off at its first write, alternately before and after it is
/// carried out, until the cluster is as `end` says and nothing more is written. The positions.
async fn killed_at_every_write(
    cluster: &TestCluster,
    operation: AdminOperation,
    end: &Snapshot,
) -> anyhow::Result<Vec<String>> {
    let each = steps::number_in(WRITES, 1)?.max(1);
    let first = 1 + u64::from(std::process::id()) % each;
    let before = operation.ask(cluster).await?;
    let mut positions = Vec::new();
    for life in 0..MOST_LIVES {
        let cut = if life % 2 == 0 { Cut::Before } else { Cut::After };
        // Each life has a proxy of its own: what a dead one still had under way reaches nobody.
        let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
        proxy.cut_at(if life == 0 { first } else { each }, cut);
        let running = operator.start()?;
        let ended = tokio::select! {
            () = proxy.closed() => None,
            ended = ends(cluster, operation, &before, end) => Some(ended),
        };
        if let Some(ended) = ended {
            ended?;
            // What is still written then is one more position.
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
    anyhow::bail!("not done after {MOST_LIVES} lives; the last were cut: {last:?}")
}

/// Waits until the operation is done and the cluster as `end` says. Most lives end before it has looked once, and every
/// look would slow them down.
async fn ends(
    cluster: &TestCluster,
    operation: AdminOperation,
    before: &operation::Before,
    end: &Snapshot,
) -> anyhow::Result<()> {
    until(&format!("{operation:?} is done"), LONGEST_LIFE, async || {
        tokio::time::sleep(LOOK).await;
        let done = operation.is_done(cluster, before).await?;
        Ok(check(done, || "not done".to_owned()))
    })
    .await?;
    operation::ends_as(cluster, end).await
}
