//! The cluster itself is in trouble while an install, a rotation and an upgrade go on: its API server restarts, its
//! storage hangs, requests fail at random.
//!
//! Nothing may be lost, and it must end as if there had been no trouble. Requests that only the API server itself turned
//! away are sent again and counted apart (see [`crate::request::Answer::is_outage`]); all others must succeed.

use std::time::Duration;

use futures::future::{Either, select};
use windlass_sandbox::server::Fault;

use super::{
    operation::{self, Before, Operation},
    traffic,
};
use crate::{cluster::Disruption, operator, snapshot::Snapshot, steps::until, test_cluster::TestCluster};

/// What is done, one after the other.
const OPERATIONS: [Operation; 3] = [Operation::Install, Operation::CaRotation, Operation::Upgrade];

/// How long storage hangs.
const PAUSE: Duration = Duration::from_secs(10);

/// How often watches are cut while requests fail at random.
const CUT: Duration = Duration::from_secs(1);

/// The errors, and how often a request of the operator meets each: half of the time before it is carried out, half of
/// the time after.
const CODES: [u16; 4] = [409, 410, 429, 500];
const PROBABILITY: f64 = 0.01;

/// How long an operation may take with all its trouble.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn restarts_of_the_api_server_lose_nothing(bed: &TestCluster) -> anyhow::Result<()> {
    survives(bed, Disruption::Restart).await
}

pub(super) async fn storage_that_hangs_loses_nothing(bed: &TestCluster) -> anyhow::Result<()> {
    survives(bed, Disruption::Pause).await
}

pub(super) async fn errors_at_random_and_cut_watches_lose_nothing(bed: &TestCluster) -> anyhow::Result<()> {
    survives(bed, Disruption::Faults).await
}

/// Does everything without trouble, and then with: it must end the same.
async fn survives(bed: &TestCluster, trouble: Disruption) -> anyhow::Result<()> {
    let empty = bed.inventory().await?;
    let end = untroubled(bed).await?;
    empty.restore(&bed.client).await?;
    let kept = Box::pin(bed.operator.keep_running());
    match select(Box::pin(suffers(bed, trouble, &end)), kept).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right((ended, _)) => ended.map(drop),
    }
}

/// Does everything with trouble: it must end as `end`.
async fn suffers(bed: &TestCluster, trouble: Disruption, end: &Snapshot) -> anyhow::Result<()> {
    let mut load = None;
    for operation in OPERATIONS {
        let before = operation.ask(bed).await?;
        inflict(bed, trouble, operation, &before).await?;
        done(bed, operation, &before).await?;
        operation.check(bed, &before).await?;
        if load.is_none() {
            load = Some(traffic::start_outlasting(bed, &["v1", "v1beta1"]).await?);
        }
    }
    operation::ends_as(bed, end).await?;
    if let Some(load) = load {
        load.at_least(50).await?;
        let report = traffic::finish(load).await?;
        tracing::info!(
            ?trouble,
            requests = report.requests,
            failed = report.failed,
            turned_away_by_the_api_server_itself = report.outages,
            for_at_most = ?report.longest_outage,
            "It ended as if there had been no trouble"
        );
    }
    Ok(())
}

/// How everything ends without trouble; nothing stays installed.
async fn untroubled(bed: &TestCluster) -> anyhow::Result<Snapshot> {
    let running = bed.operator.start()?;
    for operation in OPERATIONS {
        let before = operation.ask(bed).await?;
        done(bed, operation, &before).await?;
    }
    let end = operation::settled(bed).await?;
    Operation::Upgrade.undo(bed).await?;
    running.kill().await?;
    Ok(end)
}

async fn done(bed: &TestCluster, operation: Operation, before: &Before) -> anyhow::Result<()> {
    until(&format!("{operation:?} is done"), PATIENCE, async || {
        let done = operation.is_done(bed, before).await?;
        Ok(if done { Ok(()) } else { Err("not done".to_owned()) })
    })
    .await
}

/// Makes the cluster suffer once the operation is under way.
async fn inflict(
    bed: &TestCluster,
    trouble: Disruption,
    operation: Operation,
    before: &Before,
) -> anyhow::Result<()> {
    until(&format!("{operation:?} is under way"), PATIENCE, async || {
        let begun = operation::has_begun(bed, before).await?;
        Ok(if begun {
            Ok(())
        } else {
            Err("not begun".to_owned())
        })
    })
    .await?;
    match trouble {
        Disruption::Restart => bed.cluster.restart_api_server(&bed.client).await,
        Disruption::Pause => bed.cluster.pause_storage(PAUSE).await,
        Disruption::Faults => {
            let faults = bed.cluster.faults()?;
            for code in CODES {
                for carried_out in [false, true] {
                    faults.add(Fault {
                        user: operator::user(),
                        probability: PROBABILITY / 2.0,
                        code,
                        carried_out,
                    });
                }
            }
            let cuts = Box::pin(async {
                loop {
                    faults.cut_watches();
                    tokio::time::sleep(CUT).await;
                }
            });
            let outcome = match select(Box::pin(done(bed, operation, before)), cuts).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(((), _)) => Ok(()),
            };
            faults.clear();
            outcome
        }
    }
}
