//! The measurement.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use windlass_scenarios::{
    load::{Load, Report},
    operator::Running,
    progress::StepPrinter,
    resource::{Expectation, Resource},
    sample::{self, CERTIFICATE, NAMESPACE},
    scenarios::{Replica, install_guard},
    steps::{self, rotate_amid_writes, succeed},
    test_cluster::TestCluster,
};

use super::{
    arguments::FloodArguments,
    calls::{Calls, SharedCalls},
    guard::{self, GuardPort},
    outcome::{FloodOutcome, Looked},
    repair_probe::{ProbedRepairs, RepairProbe},
    tenant::Flood,
};
use crate::{bed::Bed, figures::mebibytes, measurement::Measurement};

/// Where requests go to.
const TRAFFIC: &str = "traffic";

/// The operator's pod, for which its log is named.
const POD: &str = "operator";

/// How long the repairs are measured that those during the flood are compared with.
const QUIET: Duration = Duration::from_secs(15);

/// How often the operator's memory is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Measures what a flood does to others, and to the operator's memory.
pub(crate) async fn measure(
    arguments: &FloodArguments,
    bed: &Bed,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let client = &cluster.client;
    install_guard(cluster).await?;
    let operator = Replica::start(cluster, POD).await?;
    let bundle = cluster.bundle("sample.v1")?;
    let installed = steps::install(client, "sample", NAMESPACE, &bundle);
    progress.step("Installing the sample bundle", installed).await?;
    sample::settled(cluster).await?;
    progress
        .step("Waiting for the guard", operator.join(cluster))
        .await?;
    let probe = RepairProbe::begin(cluster).await?;
    let guard = GuardPort::find(cluster, operator.address()).await?;
    let flood = progress
        .step(
            "Preparing the flood",
            Flood::prepare(arguments.kind, cluster, guard),
        )
        .await?;
    let namespace = json!({"metadata": {"name": TRAFFIC}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let widgets = Resource::widgets(&["v1", "v1beta1"], Expectation::Admitted);
    let mut load = Load::start_at_rate(client, TRAFFIC, &[widgets], arguments.rate);
    let before: Arc<Mutex<ProbedRepairs>> = Arc::default();
    let quiet = async {
        // It goes on for ever.
        let _ = tokio::time::timeout(QUIET, probe.run(before.clone())).await;
        Ok(())
    };
    progress.step("Repairing without a flood", quiet).await?;

    let during: Arc<Mutex<ProbedRepairs>> = Arc::default();
    let (sent, asked) = (SharedCalls::default(), SharedCalls::default());
    let mut others = JoinSet::new();
    others.spawn({
        let during = during.clone();
        async move { probe.run(during).await }
    });
    others.spawn(guard::ask(client.clone(), asked.clone()));
    let duration = arguments.duration.0.unsigned_abs();
    let tasks = flood.begin(client, duration, &sent);
    let looked = Mutex::new(Looked::default());
    let ended = {
        let detail = || told(&sent.lock(), &looked.lock(), &load.report());
        let flooded = async {
            let watched = async {
                tokio::try_join!(
                    watch_memory(&operator.running, &looked),
                    rotate_on(cluster, bed, &looked)
                )
            };
            Ok(match tokio::time::timeout(duration, watched).await {
                Ok(Err(error)) => Some(error),
                Ok(Ok((never, _))) => match never {},
                Err(_) => None,
            })
        };
        progress.watched("Flooding", detail, flooded).await?
    };
    drop((tasks, others));
    load.end().await;
    let outcome = FloodOutcome {
        load: load.report(),
        before: before.lock().clone(),
        during: during.lock().clone(),
        guard: asked.lock().clone(),
        flood: sent.lock().clone(),
        looked: looked.into_inner(),
        peak: operator.running.peak_memory()?,
    };
    let mut measurement = outcome.measurement(arguments);
    measurement.missed.extend(ended.map(|error| format!("{error:#}")));
    Ok(measurement)
}

/// How far it is.
fn told(sent: &Calls, looked: &Looked, load: &Report) -> String {
    format!(
        " ({} sent by the flood; {} requests, {} failed; {} CA rotations; {})",
        sent.sent(),
        load.requests,
        load.failed,
        looked.rotations.len(),
        mebibytes(looked.memory.last().copied().unwrap_or_default())
    )
}

/// Looks at the operator's memory for ever.
async fn watch_memory(operator: &Running, looked: &Mutex<Looked>) -> anyhow::Result<Infallible> {
    loop {
        let memory = operator.memory()?;
        looked.lock().memory.push(memory);
        tokio::time::sleep(LOOK).await;
    }
}

/// Rotates the CA of the sample for ever.
async fn rotate_on(cluster: &TestCluster, bed: &Bed, looked: &Mutex<Looked>) -> anyhow::Result<Infallible> {
    loop {
        let started = Instant::now();
        rotate_amid_writes(&cluster.client, NAMESPACE, CERTIFICATE, "ca", bed.patience()).await?;
        looked.lock().rotations.push(started.elapsed());
    }
}
