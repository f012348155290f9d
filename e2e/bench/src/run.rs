//! One measurement, from the cluster that it needs to its end.

use std::path::PathBuf;

use anyhow::Context;
use futures::future::LocalBoxFuture;
use windlass_scenarios::{
    cluster::BackingCluster,
    progress::StepPrinter,
    test_cluster::{TestCluster, TestClusterOptions, Waits},
};

use super::{arguments::Arguments, crowd, idle, measurement::Measurement, migration, rotations};

/// Measures; `program` is the executable that starts the operator and the sample operator.
///
/// # Errors
///
/// When it cannot be set up. What was missed is in the outcome.
pub fn run(arguments: Arguments, program: PathBuf) -> LocalBoxFuture<'static, anyhow::Result<Measurement>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        let progress = StepPrinter::start();
        progress.say(&arguments.to_string());
        let mut cluster = progress
            .step("Setting up a cluster and a node", set_up(&arguments, program))
            .await?;
        let outcome = if arguments.idle {
            idle::measure(&arguments, &cluster, &progress).await
        } else if let Some(definitions) = arguments.crowd {
            crowd::measure(definitions, &cluster, &progress).await
        } else if let Some(objects) = arguments.migrate {
            migration::measure(&arguments, objects, &cluster, &progress).await
        } else {
            rotations::measure(&arguments, &cluster, &progress).await
        };
        if !outcome.as_ref().is_ok_and(Measurement::is_good) {
            eprintln!("Last lines of the operator's log:\n{}", cluster.log_tail());
            eprintln!("Logs and objects are kept in {}", cluster.keep().await?.display());
        }
        progress.step("Cleaning up", cluster.stop()).await?;
        outcome
    })
}

async fn set_up(arguments: &Arguments, program: PathBuf) -> anyhow::Result<TestCluster> {
    let backing = if arguments.sandbox {
        BackingCluster::sandbox().await?
    } else {
        let kubeconfig = arguments.access.kubeconfig.as_deref();
        let kubeconfig = kubeconfig.context("no cluster: start this with e2e/soak, or use --sandbox")?;
        BackingCluster::named(kubeconfig, arguments.access.pod_network).await?
    };
    let options = TestClusterOptions {
        refresh_delay: arguments.scaled_delay(),
        waits: Waits::Scaled(arguments.time_scale),
        ..TestClusterOptions::new(program)
    };
    TestCluster::on(backing, options).await
}
