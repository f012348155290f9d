//! One measurement, from the cluster that it needs to its end.

use std::path::PathBuf;

use anyhow::Context;
use futures::future::LocalBoxFuture;
use windlass_scenarios::{
    cluster::BackingCluster,
    progress::StepPrinter,
    test_cluster::{TestCluster, TestClusterOptions, Waits},
};

use super::{
    admission,
    arguments::{Arguments, MeasuredSubject},
    bed::Bed,
    blind, changes, crowd, flood, idle,
    measurement::Measurement,
    migration, nights, repairs, rotations,
};

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
            .step("Setting up a cluster and a node", set_up(&arguments.bed, program))
            .await?;
        let mut outcome = match &arguments.subject {
            MeasuredSubject::Rotations(rotations) => {
                rotations::measure(rotations, &arguments.bed, &cluster, &progress).await
            }
            MeasuredSubject::Changes(changes) => changes::measure(changes, &cluster, &progress).await,
            MeasuredSubject::Repairs(repairs) => repairs::measure(repairs, &cluster, &progress).await,
            MeasuredSubject::Nights(nights) => nights::measure(nights, &cluster, &progress).await,
            MeasuredSubject::Blind(blind) => blind::measure(blind, &cluster, &progress).await,
            MeasuredSubject::Idle(idle) => idle::measure(idle, &cluster, &progress).await,
            MeasuredSubject::Crowd(crowd) => crowd::measure(crowd, &cluster, &progress).await,
            MeasuredSubject::Flood(flood) => flood::measure(flood, &arguments.bed, &cluster, &progress).await,
            MeasuredSubject::Migration(migration) => migration::measure(migration, &cluster, &progress).await,
            MeasuredSubject::Admission(admission) => admission::measure(admission, &cluster, &progress).await,
        };
        if !outcome.as_ref().is_ok_and(Measurement::is_good) {
            eprintln!("Last lines of the operator's log:\n{}", cluster.log_tail());
            eprintln!("Logs and objects are kept in {}", cluster.keep().await?.display());
        }
        let cleaned = progress.step("Cleaning up", cluster.stop()).await;
        // What was measured is told all the same.
        match (&mut outcome, cleaned) {
            (Ok(measurement), Err(error)) => measurement.missed.push(format!("{error:#}")),
            (_, cleaned) => cleaned?,
        }
        outcome
    })
}

async fn set_up(bed: &Bed, program: PathBuf) -> anyhow::Result<TestCluster> {
    let backing = if bed.sandbox {
        BackingCluster::sandbox().await?
    } else {
        let kubeconfig = bed.access.kubeconfig.as_deref();
        let kubeconfig = kubeconfig.context("no cluster: start this with e2e/soak, or use --sandbox")?;
        BackingCluster::named(kubeconfig, bed.access.pods()).await?
    };
    let options = TestClusterOptions {
        refresh_delay: bed.scaled_delay(),
        waits: Waits::Scaled(bed.time_scale),
        windlass: bed.windlass.clone(),
        ..TestClusterOptions::new(program)
    };
    TestCluster::on(backing, options).await
}
