//! Disruptions of the cluster during an install, a rotation and an upgrade: its API server restarts, its
//! storage hangs, requests fail at random.
//!
//! Nothing may be lost, and the result must equal that of an undisturbed run. Requests that only the API
//! server itself rejected are sent again and counted separately (see
//! [`crate::request::RequestAnswer::is_outage`]); all others must succeed.

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

/// The operations, in this order.
const OPERATIONS: [AdminOperation; 3] = [
    AdminOperation::Install,
    AdminOperation::CaRotation,
    AdminOperation::Upgrade,
];

/// How long the storage hangs.
const PAUSE: Duration = Duration::from_secs(10);

/// The interval in which watches are cut while requests fail at random.
const CUT: Duration = Duration::from_secs(1);

/// The status codes, and the probability that a request of the operator gets one of them. Half of the errors
/// replace the request, the other half follow its execution.
const CODES: [u16; 4] = [409, 410, 429, 500];
const PROBABILITY: f64 = 0.01;

/// The time limit of an operation during a disruption.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs all operations undisturbed, then disrupted, and compares the results.
pub(super) async fn survives(cluster: &TestCluster, disruption: Disruption) -> anyhow::Result<()> {
    let empty = cluster.inventory().await?;
    let end = run_undisturbed(cluster).await?;
    empty.restore(&cluster.client).await?;
    let kept = Box::pin(cluster.operator.keep_running());
    match select(Box::pin(run_disrupted(cluster, disruption, &end)), kept).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right((ended, _)) => ended.map(drop),
    }
}

/// Runs all operations disrupted; the result must equal `end`.
async fn run_disrupted(cluster: &TestCluster, disruption: Disruption, end: &Snapshot) -> anyhow::Result<()> {
    let mut load = None;
    for operation in OPERATIONS {
        let before = operation.start(cluster).await?;
        disrupt(cluster, disruption, operation, &before).await?;
        wait_until_done(cluster, operation, &before).await?;
        operation.check(cluster, &before).await?;
        if load.is_none() {
            load = Some(traffic::start_outlasting(cluster, &["v1", "v1beta1"]).await?);
        }
    }
    operation::wait_for_state(cluster, end).await?;
    if let Some(load) = load {
        load.at_least(50).await?;
        let report = traffic::finish(load).await?;
        tracing::info!(
            ?disruption,
            requests = report.requests,
            failed = report.failed,
            turned_away_by_the_api_server_itself = report.outages,
            for_at_most = ?report.longest_outage,
            "The result equals an undisturbed run"
        );
    }
    Ok(())
}

/// Returns the result of an undisturbed run, and removes the install.
async fn run_undisturbed(cluster: &TestCluster) -> anyhow::Result<Snapshot> {
    let running = cluster.operator.start()?;
    for operation in OPERATIONS {
        let before = operation.start(cluster).await?;
        wait_until_done(cluster, operation, &before).await?;
    }
    let end = operation::wait_until_unchanged(cluster).await?;
    AdminOperation::Upgrade.undo(cluster).await?;
    running.kill().await?;
    Ok(end)
}

async fn wait_until_done(
    cluster: &TestCluster,
    operation: AdminOperation,
    before: &Before,
) -> anyhow::Result<()> {
    until(&format!("{operation:?} is complete"), PATIENCE, async || {
        let done = operation.is_done(cluster, before).await?;
        Ok(check(done, || "not done".to_owned()))
    })
    .await
}

/// Starts the disruption when the operation has begun.
async fn disrupt(
    cluster: &TestCluster,
    disruption: Disruption,
    operation: AdminOperation,
    before: &Before,
) -> anyhow::Result<()> {
    until(&format!("{operation:?} has begun"), PATIENCE, async || {
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
            let outcome = match select(Box::pin(wait_until_done(cluster, operation, before)), cuts).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(((), _)) => Ok(()),
            };
            faults.clear();
            outcome
        }
        Disruption::ControllerRuntime
        | Disruption::Cainjector
        | Disruption::Gitops
        | Disruption::SecondApiServer
        | Disruption::Helm
        | Disruption::Controllers
        | Disruption::AdmissionPolicies
        | Disruption::Impersonation => {
            anyhow::bail!("this is a feature of a cluster, not a disruption")
        }
    }
}
