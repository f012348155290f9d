//! Runs one scenario in its own test cluster, as a test.

use std::{path::Path, time::Instant};

use anyhow::Context;
use futures::future::LocalBoxFuture;
use libtest_mimic::Failed;

use crate::{
    cluster::BackingCluster,
    cluster_pool::ClusterPool,
    scenario_durations::ScenarioDurations,
    scenarios::Scenario,
    test_cluster::{TestCluster, TestClusterOptions},
};

/// The log filter of scenarios. Client errors are expected answers.
pub const LOG_FILTER: &str = "warn,windlass_scenarios=info,kube_client::client::builder=off";

/// Runs a scenario on its own sandbox; `program` is the executable of [`TestClusterOptions::program`]. Adds
/// the duration to `durations`.
///
/// # Errors
///
/// Returns the failure, the end of the operator's log, and the folder with other logs and objects.
pub fn run_on_sandbox(
    scenario: &Scenario,
    program: &Path,
    durations: &ScenarioDurations,
) -> Result<(), Failed> {
    run(scenario, program, durations, Box::pin(BackingCluster::sandbox())).0
}

/// Runs a scenario on a borrowed cluster, and gives the cluster back if the scenario left nothing in it.
///
/// # Errors
///
/// As [`run_on_sandbox`]; also if no cluster is left.
pub fn run_on_borrowed(
    scenario: &Scenario,
    program: &Path,
    durations: &ScenarioDurations,
    pool: &ClusterPool,
) -> Result<(), Failed> {
    let borrowed = pool.borrow()?;
    let (outcome, is_clean) = run(scenario, program, durations, Box::pin(borrowed.cluster()));
    if is_clean {
        borrowed.give_back();
    }
    outcome
}

/// Returns the result of a scenario, and whether the cluster is restored.
fn run(
    scenario: &Scenario,
    program: &Path,
    durations: &ScenarioDurations,
    backing: LocalBoxFuture<'_, anyhow::Result<BackingCluster>>,
) -> (Result<(), Failed>, bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return (Err(error.into()), true),
    };
    runtime.block_on(async {
        let started = Instant::now();
        let cluster = async {
            let backing = backing.await?;
            let options = TestClusterOptions::for_cluster(program, &backing)?;
            TestCluster::on(backing, options).await
        };
        let mut cluster = match cluster.await {
            Ok(cluster) => cluster,
            Err(error) => return (Err(format!("{error:?}").into()), false),
        };
        let outcome = scenario.run(&cluster).await;
        let evidence = match &outcome {
            Ok(()) => String::new(),
            Err(_) => evidence(&mut cluster).await,
        };
        let stopped = cluster.stop().await.context("cleaning up");
        let took = started.elapsed();
        tracing::info!(scenario = scenario.name, seconds = took.as_secs_f32(), "Ended");
        durations.ended(scenario, took);
        let is_clean = stopped.is_ok();
        let outcome = outcome.and(stopped);
        let outcome = outcome.map_err(|error| format!("{error:?}\n{evidence}").into());
        (outcome, is_clean)
    })
}

async fn evidence(cluster: &mut TestCluster) -> String {
    let tail = cluster.log_tail();
    let kept = match cluster.keep().await {
        Ok(folder) => format!("Logs and objects are kept in {}", folder.display()),
        Err(error) => format!("Not everything could be kept: {error:#}"),
    };
    format!("Last lines of the operator's log:\n{tail}\n{kept}")
}
