//! Rotations under a steady load.

use std::{
    fmt,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use clap::Args;
use parking_lot::Mutex;
use serde_json::json;
use windlass_scenarios::{
    load::{Load, Report},
    progress::StepPrinter,
    resource::{Expectation, Resource},
    sample::{self, CERTIFICATE, NAMESPACE},
    steps::{rotate, succeed},
    test_cluster::TestCluster,
};

use super::{
    bed::{Bed, LoadArguments},
    figures::{Figures, Lap, LapKind, since},
    measurement::Measurement,
    started::{Started, set_replicas},
    targets::Targets,
};

/// How rotations are measured: requests go through all three webhooks of the sample bundle at a steady rate, while the serving
/// certificate is renewed and the CA is rotated. None is to fail, and no target is to be written more than once a rotation.
#[derive(Clone, Debug, Args)]
pub struct RotationArguments {
    /// Number of CA rotations, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: u32,

    /// Number of renewals of the serving certificate before the CA rotations.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub leaves: u32,

    /// Minimum number of requests to send; if the rotations are done earlier, the rest is sent after them.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub requests: u64,

    /// How they are sent.
    #[command(flatten)]
    pub load: LoadArguments,
}

/// Where requests go to.
const TRAFFIC: &str = "traffic";

/// How much of the rate must have been kept, in percent.
const KEPT: u128 = 99;

struct Run<'a> {
    arguments: &'a RotationArguments,
    bed: &'a Bed,
    cluster: &'a TestCluster,
    progress: &'a StepPrinter,
    started: &'a Started,
    load: Load,
    targets: Targets,
    figures: Mutex<Figures>,
}

impl fmt::Display for RotationArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            leaves,
            requests,
            load,
        } = self;
        write!(
            f,
            "{leaves} renewals of the serving certificate and {count} CA rotations; {requests} requests or more; {load}"
        )
    }
}

/// Measures rotations.
pub(super) async fn measure(
    arguments: &RotationArguments,
    bed: &Bed,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let bundle = cluster.bundle("sample.v1")?;
    set_replicas(cluster, &bundle, arguments.load.replicas)?;
    let started = Started::new(cluster, &bundle, progress).await?;
    sample::settled(cluster).await?;
    let targets = Targets::watch(&cluster.client, NAMESPACE, CERTIFICATE).await?;
    let namespace = json!({"metadata": {"name": TRAFFIC}});
    succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let begun = Instant::now();
    let widgets = Resource::widgets(&["v1", "v1beta1"], Expectation::Admitted);
    let mut run = Run {
        arguments,
        bed,
        cluster,
        progress,
        started: &started,
        load: Load::start_at_rate(&cluster.client, TRAFFIC, &[widgets], arguments.load.rate),
        targets,
        figures: Mutex::default(),
    };
    let limit = arguments.load.duration.0.unsigned_abs();
    match tokio::time::timeout(limit, run.go()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => run.figures.lock().missed.push(format!("{error:#}")),
        Err(_) => run
            .figures
            .lock()
            .missed
            .push(format!("timed out after {}", arguments.load.duration)),
    }
    let took = begun.elapsed();
    run.load.end().await;
    run.lap("the end", LapKind::Other);
    let total = run.load.report();
    let mut figures = run.figures.into_inner();
    let done = figures.rotations.len();
    figures.missed.extend(missed(arguments, &total, took, done));
    Ok(Measurement {
        tables: figures.tables(&total),
        failures: total.first_failures(),
        missed: figures.missed,
        summary: format!(
            "{} requests in {:.0} s, {} failed; {done} CA rotations",
            total.requests,
            took.as_secs_f64(),
            total.failed
        ),
    })
}

/// What was asked for and not reached: `done` CA rotations in the time that it `took`.
fn missed(arguments: &RotationArguments, total: &Report, took: Duration, done: usize) -> Vec<String> {
    let mut missed = Vec::new();
    if total.failed > 0 {
        missed.push(format!("{} requests failed", total.failed));
    }
    let due = took.as_millis() * u128::from(arguments.load.rate) / 1000;
    if u128::from(total.requests) * 100 < due * KEPT {
        missed.push(format!("{} requests were sent, expected {due}", total.requests));
    }
    if done < usize::try_from(arguments.count).unwrap_or(usize::MAX) {
        missed.push(format!("{done} of {} CA rotations were done", arguments.count));
    }
    missed
}

impl Run<'_> {
    async fn go(&self) -> anyhow::Result<()> {
        self.remember_memory()?;
        self.quiet().await?;
        self.renew().await?;
        self.rotate().await?;
        self.rest().await
    }

    /// First connections are made, then comes what rotations are compared with.
    async fn quiet(&self) -> anyhow::Result<()> {
        let connecting = u64::from(self.arguments.load.rate) * 2;
        let requests = (self.arguments.requests / 10).clamp(500, 2000);
        self.watched("Sending requests without rotations", String::new, async {
            self.load.at_least(connecting).await?;
            self.lap("the start", LapKind::Other);
            self.load.at_least(requests).await?;
            self.lap("baseline", LapKind::Quiet);
            Ok(())
        })
        .await
    }

    async fn renew(&self) -> anyhow::Result<()> {
        let count = self.arguments.leaves;
        if count == 0 {
            return Ok(());
        }
        let done = AtomicU32::new(0);
        let detail = || format!(", {} of {count} done", done.load(Ordering::Relaxed));
        self.watched("Renewing the serving certificate", detail, async {
            let before = self.targets.snapshot().await?;
            for _ in 0..count {
                // Certificates say in whole seconds when they were issued.
                self.load.at_least(self.arguments.load.rate.into()).await?;
                self.rotated("leaf").await?;
                done.fetch_add(1, Ordering::Relaxed);
                self.remember_memory()?;
            }
            let after = self.targets.snapshot().await?;
            self.figures.lock().note_renewals(&before, &after);
            Ok(())
        })
        .await?;
        self.lap(&format!("leaf renewals: {count}"), LapKind::Rotations);
        Ok(())
    }

    async fn rotate(&self) -> anyhow::Result<()> {
        let count = self.arguments.count;
        let done = || self.figures.lock().rotations.len();
        let detail = || format!(", {} of {count} done", done());
        let requests = self.started.proxy.requests();
        let rotated = self
            .watched("Rotating the CA", detail, async {
                let mut before = self.targets.snapshot().await?;
                for number in 1..=count {
                    let took = self.rotated("ca").await?;
                    let after = self.targets.snapshot().await?;
                    self.remember_memory()?;
                    let mut figures = self.figures.lock();
                    figures.rotations.push(took);
                    figures.note_rotation(number, &before, &after);
                    figures.requests = since(&requests, self.started.proxy.requests());
                    before = after;
                }
                Ok(())
            })
            .await;
        if count > 0 {
            self.lap(&format!("CA rotations: {}", done()), LapKind::Rotations);
        }
        rotated
    }

    /// Sends what is missing.
    async fn rest(&self) -> anyhow::Result<()> {
        let missing = self
            .arguments
            .requests
            .saturating_sub(self.load.report().requests);
        if missing == 0 {
            return Ok(());
        }
        self.watched("Sending the remaining requests", String::new, async {
            self.load.at_least(missing).await
        })
        .await?;
        self.lap("after the rotations", LapKind::Other);
        Ok(())
    }

    async fn rotated(&self, what: &str) -> anyhow::Result<Duration> {
        let started = Instant::now();
        rotate(
            &self.cluster.client,
            NAMESPACE,
            CERTIFICATE,
            what,
            self.bed.patience(),
        )
        .await?;
        Ok(started.elapsed())
    }

    async fn watched<T>(
        &self,
        title: &str,
        detail: impl Fn() -> String,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let detail = || {
            let report = self.load.report();
            format!(
                "{} ({} requests, {} failed)",
                detail(),
                report.requests,
                report.failed
            )
        };
        self.progress.watched(title, detail, work).await
    }

    fn lap(&self, title: &str, kind: LapKind) {
        let lap = Lap {
            title: title.to_owned(),
            kind,
            report: self.load.lap(),
        };
        self.figures.lock().laps.push(lap);
    }

    fn remember_memory(&self) -> anyhow::Result<()> {
        let memory = self.started.operator.memory()?;
        self.figures.lock().memory.push(memory);
        Ok(())
    }
}
