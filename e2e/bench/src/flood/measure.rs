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
    steps::{self, rotate, succeed},
    test_cluster::TestCluster,
};

use super::{
    arguments::FloodArguments,
    calls::{Calls, SharedCalls},
    guard::{self, GuardPort},
    repair_probe::{ProbedRepairs, RepairProbe},
    tenant::Flood,
};
use crate::{
    arguments::Bed,
    figures::{mebibytes, short},
    measurement::Measurement,
};

/// Where requests go to.
const TRAFFIC: &str = "traffic";

/// The operator's pod, for which its log is named.
const POD: &str = "operator";

/// How long the repairs are measured that those during the flood are compared with.
const QUIET: Duration = Duration::from_secs(15);

/// How often the operator's memory is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Memory and rotations, as far as they were looked at.
#[derive(Clone, Debug, Default)]
struct Looked {
    memory: Vec<u64>,
    rotations: Vec<Duration>,
}

/// What a flood came to.
struct FloodOutcome {
    load: Report,
    before: ProbedRepairs,
    during: ProbedRepairs,
    guard: Calls,
    flood: Calls,
    looked: Looked,
    peak: u64,
}

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
        rotate(&cluster.client, NAMESPACE, CERTIFICATE, "ca", bed.patience()).await?;
        looked.lock().rotations.push(started.elapsed());
    }
}

// === impl FloodOutcome ===

impl FloodOutcome {
    fn measurement(&self, arguments: &FloodArguments) -> Measurement {
        Measurement {
            tables: self.tables(),
            failures: self.load.told(),
            missed: self.missed(),
            summary: format!(
                "{}, for {}: {} of memory at most; {} requests, {} failed; {} CA rotations; repairs p99 {}",
                arguments.kind,
                arguments.duration,
                mebibytes(self.peak),
                self.load.requests,
                self.load.failed,
                self.looked.rotations.len(),
                self.during.repairs.percentile(99),
            ),
        }
    }

    fn tables(&self) -> String {
        let mut table = Calls::headings();
        Calls::from(&self.load).add_to(&mut table, "requests to the sample");
        self.guard.add_to(&mut table, "requests to the guard");
        self.before
            .writes
            .add_to(&mut table, "overwrites before the flood");
        self.before.repairs.add_to(&mut table, "repairs before the flood");
        self.during.writes.add_to(&mut table, "overwrites");
        self.during.repairs.add_to(&mut table, "repairs");
        self.flood.add_to(&mut table, "the flood");
        let mut parts = vec![table.to_string()];
        let noted = [
            ("requests to the guard", &self.guard),
            ("overwrites", &self.during.writes),
            ("repairs", &self.during.repairs),
            ("the flood", &self.flood),
        ];
        let noted: String = noted.iter().map(|(title, calls)| calls.answers(title)).collect();
        parts.extend((!noted.is_empty()).then_some(noted));
        parts.push(self.looked.told(self.peak));
        parts.join("\n")
    }

    /// What should not have been. How fast it was is for those to judge who read it.
    fn missed(&self) -> Vec<String> {
        let failed = [
            ("requests to the sample", self.load.failed),
            ("requests that the guard is to deny", self.guard.failures()),
            ("overwrites", self.during.writes.failures()),
            ("repairs", self.during.repairs.failures()),
        ];
        let failed = failed.iter().filter(|(_, count)| *count > 0);
        let mut missed: Vec<_> = failed
            .map(|(what, count)| format!("{count} {what} failed"))
            .collect();
        if self.looked.rotations.is_empty() {
            missed.push("no CA rotation was done".to_owned());
        }
        if self.flood.sent() == self.flood.failures() {
            missed.push("there was no flood".to_owned());
        }
        missed
    }
}

// === impl Looked ===

impl Looked {
    fn told(&self, peak: u64) -> String {
        let mut sorted = self.rotations.clone();
        sorted.sort_unstable();
        let rotations = match (sorted.first(), sorted.last()) {
            (Some(least), Some(most)) => format!(
                "{} CA rotations: minimum {}, median {}, maximum {}.\n",
                sorted.len(),
                short(*least),
                short(sorted[sorted.len() / 2]),
                short(*most)
            ),
            _ => "No CA rotation.\n".to_owned(),
        };
        let memory = |bytes: Option<&u64>| mebibytes(bytes.copied().unwrap_or_default());
        format!(
            "{rotations}Memory of the operator: {} before the flood, {} at its end, {} at most.\n",
            memory(self.memory.first()),
            memory(self.memory.last()),
            mebibytes(peak)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> FloodOutcome {
        let mut flood = Calls::default();
        flood.succeeded(Duration::from_millis(1));
        FloodOutcome {
            load: Report::default(),
            before: ProbedRepairs::default(),
            during: ProbedRepairs::default(),
            guard: Calls::default(),
            flood,
            looked: Looked {
                memory: vec![1 << 20],
                rotations: vec![Duration::from_secs(9)],
            },
            peak: 2 << 20,
        }
    }

    #[test]
    fn a_call_that_failed_is_missed_and_a_slow_one_is_not() {
        let mut outcome = outcome();
        outcome.during.repairs.succeeded(Duration::from_secs(9));
        outcome.flood.failed("too large");
        assert_eq!(outcome.missed(), Vec::<String>::new());
        outcome.guard.failed("not denied");
        outcome.load.failed = 2;
        assert_eq!(
            outcome.missed(),
            [
                "2 requests to the sample failed",
                "1 requests that the guard is to deny failed"
            ]
        );
    }

    #[test]
    fn a_flood_without_a_rotation_or_that_never_came_is_missed() {
        let mut outcome = outcome();
        outcome.looked.rotations.clear();
        outcome.flood = Calls::default();
        assert_eq!(
            outcome.missed(),
            ["no CA rotation was done", "there was no flood"]
        );
    }
}
