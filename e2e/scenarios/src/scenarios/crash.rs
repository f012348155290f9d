//! The operator is killed before and after every single write of an operation, and started again.
//!
//! Each life of the operator is cut off at its first write: before it reaches the API server, or after it was carried
//! out and before the operator hears of it. So each write is met twice, and one operation goes through every position
//! there is. It must end as one that nobody disturbed: the same objects, none twice, none left over.

use std::time::{Duration, Instant};

use super::operation::{self, Operation};
use crate::{proxy::Cut, snapshot::Snapshot, steps::until, test_cluster::TestCluster};

/// More lives than any operation has positions.
const MOST_LIVES: usize = 400;

/// How often a life is asked whether everything is done.
const LOOK: Duration = Duration::from_millis(400);

/// How long a life may last that neither writes nor finds everything done: a namespace controller that could not empty a
/// namespace tries again after up to a minute.
const LONGEST_LIFE: Duration = Duration::from_secs(120);

pub(super) async fn an_install_resumes_from_every_write(bed: &TestCluster) -> anyhow::Result<()> {
    resumes(bed, Operation::Install).await
}

pub(super) async fn an_upgrade_resumes_from_every_write(bed: &TestCluster) -> anyhow::Result<()> {
    resumes(bed, Operation::Upgrade).await
}

pub(super) async fn a_storage_migration_resumes_from_every_write(bed: &TestCluster) -> anyhow::Result<()> {
    resumes(bed, Operation::Migration).await
}

pub(super) async fn a_leaf_rotation_resumes_from_every_write(bed: &TestCluster) -> anyhow::Result<()> {
    resumes(bed, Operation::LeafRotation).await
}

pub(super) async fn a_ca_rotation_resumes_from_every_write(bed: &TestCluster) -> anyhow::Result<()> {
    resumes(bed, Operation::CaRotation).await
}

pub(super) async fn a_removal_resumes_from_every_write(bed: &TestCluster) -> anyhow::Result<()> {
    resumes(bed, Operation::Removal).await
}

pub(super) async fn a_removal_with_definitions_resumes_from_every_write(
    bed: &TestCluster,
) -> anyhow::Result<()> {
    resumes(bed, Operation::RemovalWithCrds).await
}

pub(super) async fn a_removal_after_its_namespace_resumes_from_every_write(
    bed: &TestCluster,
) -> anyhow::Result<()> {
    resumes(bed, Operation::RemovalAfterNamespace).await
}

/// Carries `operation` out undisturbed, and then killed at every position: it must end the same.
async fn resumes(bed: &TestCluster, operation: Operation) -> anyhow::Result<()> {
    let empty = bed.inventory().await?;
    let (end, writes) = undisturbed(bed, operation).await?;
    if !operation.is_repeatable() {
        empty.restore(&bed.client).await?;
        let running = bed.operator.start()?;
        operation.prepare(bed).await?;
        running.kill().await?;
    }
    let users = operation.users(bed).await?;
    let started = Instant::now();
    let positions = killed_at_every_write(bed, operation, &end).await?;
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
async fn undisturbed(bed: &TestCluster, operation: Operation) -> anyhow::Result<(Snapshot, u64)> {
    let (operator, gate) = bed.gated(&bed.operator).await?;
    let running = operator.start()?;
    operation.prepare(bed).await?;
    operation::settled(bed).await?;
    let writes = gate.writes();
    let before = operation.ask(bed).await?;
    until(&format!("{operation:?} is done"), LONGEST_LIFE, async || {
        let done = operation.is_done(bed, &before).await?;
        Ok(if done { Ok(()) } else { Err("not done".to_owned()) })
    })
    .await?;
    let end = operation::settled(bed).await?;
    operation.check(bed, &before).await?;
    let writes = gate.writes() - writes;
    operation.undo(bed).await?;
    running.kill().await?;
    Ok((end, writes))
}

/// Starts the operator again and again, cutting each life off at its first write, alternately before and after it is
/// carried out, until the cluster is as `end` says and nothing more is written. The positions.
async fn killed_at_every_write(
    bed: &TestCluster,
    operation: Operation,
    end: &Snapshot,
) -> anyhow::Result<Vec<String>> {
    let before = operation.ask(bed).await?;
    let mut positions = Vec::new();
    for life in 0..MOST_LIVES {
        let cut = if life % 2 == 0 { Cut::Before } else { Cut::After };
        // Each life has a gate of its own: what a dead one still had under way reaches nobody.
        let (operator, gate) = bed.gated(&bed.operator).await?;
        gate.cut_at(1, cut);
        let running = operator.start()?;
        let ended = tokio::select! {
            () = gate.closed() => None,
            ended = ends(bed, operation, &before, end) => Some(ended),
        };
        if let Some(ended) = ended {
            ended?;
            // What is still written then is one more position.
            if tokio::time::timeout(operation::QUIET, gate.closed())
                .await
                .is_err()
            {
                operation.check(bed, &before).await?;
                running.kill().await?;
                return Ok(positions);
            }
        }
        running.kill().await?;
        positions.push(format!("{cut:?} {}", gate.log().join(", ")));
    }
    let last = &positions[positions.len().saturating_sub(6)..];
    anyhow::bail!("not done after {MOST_LIVES} lives; the last were cut: {last:?}")
}

/// Waits until the operation is done and the cluster as `end` says. Most lives end before it has looked once, and every
/// look would slow them down.
async fn ends(
    bed: &TestCluster,
    operation: Operation,
    before: &operation::Before,
    end: &Snapshot,
) -> anyhow::Result<()> {
    until(&format!("{operation:?} is done"), LONGEST_LIFE, async || {
        tokio::time::sleep(LOOK).await;
        let done = operation.is_done(bed, before).await?;
        Ok(if done { Ok(()) } else { Err("not done".to_owned()) })
    })
    .await?;
    operation::ends_as(bed, end).await
}
