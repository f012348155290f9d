//! The cluster itself is disrupted while an install, a rotation and an upgrade go on: its API server restarts, its
//! storage hangs, requests fail at random.
//!
//! Nothing may be lost, and it must end as if nothing had been disrupted. Requests that only the API server itself turned
//! away are sent again and counted apart (see [`crate::request::RequestAnswer::is_outage`]); all others must succeed.

use std::time::Duration;

use futures::future::{Either, select};
use windlass_sandbox::server::Fault;

use super::{
    operation::{self, AdminOperation, Before},
    traffic,
};
use crate::{
    cluster::Disruption,
    operator,
    snapshot::Snapshot,
    steps::{check, until},
    test_cluster::TestCluster,
};

/// What is done, one after the other.
const OPERATIONS: [AdminOperation; 3] = [
    AdminOperation::Install,
    AdminOperation::CaRotation,
    AdminOperation::Upgrade,
];

/// How long storage hangs.
const PAUSE: Duration = Duration::from_secs(10);

/// How often watches are cut while requests fail at random.
const CUT: Duration = Duration::from_secs(1);

/// The errors, and how often a request of the operator meets each: half of the time before it is carried out, half of
/// the time after.
const CODES: [u16; 4] = [409, 410, 429, 500];
const PROBABILITY: f64 = 0.01;

/// How long an operation may take with all disruptions.
const PATIENCE: Duration = Duration::from_secs(120);

/// Does everything undisturbed, and then disrupted: it must end the same.
pub(super) async fn survives(cluster: &TestCluster, disruption: Disruption) -> anyhow::Result<()> {
    let empty = cluster.inventory().await?;
    let end = undisturbed(cluster).await?;
    empty.restore(&cluster.client).await?;
    let kept = Box::pin(cluster.operator.keep_running());
    match select(Box::pin(disrupted(cluster, disruption, &end)), kept).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right((ended, _)) => ended.map(drop),
    }
}

/// Does everything disrupted: it must end as `end`.
async fn disrupted(cluster: &TestCluster, disruption: Disruption, end: &Snapshot) -> anyhow::Result<()> {
    let mut load = None;
    for operation in OPERATIONS {
        let before = operation.ask(cluster).await?;
        inflict(cluster, disruption, operation, &before).await?;
        done(cluster, operation, &before).await?;
        operation.check(cluster, &before).await?;
        if load.is_none() {
            load = Some(traffic::start_outlasting(cluster, &["v1", "v1beta1"]).await?);
        }
    }
    operation::ends_as(cluster, end).await?;
    if let Some(load) = load {
        load.at_least(50).await?;
        let report = traffic::finish(load).await?;
        tracing::info!(
            ?disruption,
            requests = report.requests,
            failed = report.failed,
            turned_away_by_the_api_server_itself = report.outages,
            for_at_most = ?report.longest_outage,
            "It ended as if nothing had been disrupted"
        );
    }
    Ok(())
}

/// How everything ends undisturbed; nothing stays installed.
async fn undisturbed(cluster: &TestCluster) -> anyhow::Result<Snapshot> {
    let running = cluster.operator.start()?;
    for operation in OPERATIONS {
        let before = operation.ask(cluster).await?;
        done(cluster, operation, &before).await?;
    }
    let end = operation::settled(cluster).await?;
    AdminOperation::Upgrade.undo(cluster).await?;
    running.kill().await?;
    Ok(end)
}

async fn done(cluster: &TestCluster, operation: AdminOperation, before: &Before) -> anyhow::Result<()> {
    until(&format!("{operation:?} is done"), PATIENCE, async || {
        let done = operation.is_done(cluster, before).await?;
        Ok(check(done, || "not done".to_owned()))
    })
    .await
}

/// Inflicts the disruption once the operation is under way.
async fn inflict(
    cluster: &TestCluster,
    disruption: Disruption,
    operation: AdminOperation,
    before: &Before,
) -> anyhow::Result<()> {
    until(&format!("{operation:?} is under way"), PATIENCE, async || {
        let begun = operation::has_begun(cluster, before).await?;
        Ok(check(begun, || "not begun".to_owned()))
    })
    .await?;
    match disruption {
        Disruption::Restart => cluster.backing.restart_api_server(&cluster.client).await,
        Disruption::Pause => cluster.backing.pause_storage(PAUSE).await,
        Disruption::Faults => {
            let faults = cluster.backing.faults()?;
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
            let outcome = match select(Box::pin(done(cluster, operation, before)), cuts).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(((), _)) => Ok(()),
            };
            faults.clear();
            outcome
        }
        Disruption::ControllerRuntime
        | Disruption::Cainjector
        | Disruption::Helm
        | Disruption::Controllers
        | Disruption::AdmissionPolicies
        | Disruption::Impersonation => {
            anyhow::bail!("what a cluster has inflicts nothing on it")
        }
    }
}
