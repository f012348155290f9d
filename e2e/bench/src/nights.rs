//! The worst night of a certificate: leaders are killed, or clocks step, while CAs rotate and a stranger takes trust bundles.

use std::{
    cell::RefCell,
    fmt,
    time::{Duration, Instant},
};

use clap::{ArgGroup, Args};
use futures::future::try_join_all;
use serde_json::json;
use tokio::time::MissedTickBehavior;
use windlass_object::GoDuration;
use windlass_scenarios::{
    load::{Failure, Latencies, Load, Report},
    progress::StepPrinter,
    resource::{Expectation, Resource},
    sample::{self, CERTIFICATE, NAMESPACE},
    steps::{install, rotate, succeed},
    test_cluster::TestCluster,
};

use super::{
    figures::short, measurement::Measurement, preloaded::PreloadedWorld, replicas::OperatorReplicas,
    stranger::Stranger, table::FiguresTable,
};

/// How a bad night is measured: CAs rotate one after the other under load, while somebody else puts an empty trust bundle into
/// each target every second. Requests may fail from such a write until it is repaired, and at no other time.
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("trouble").required(true).multiple(true).args(["kills_every", "clock_steps"])))]
pub struct NightArguments {
    /// Kill the leader (kill -9) so often. Two others stand by, and another takes the place of the one that was killed.
    #[arg(long, value_name = "DURATION")]
    pub kills_every: Option<GoDuration>,

    /// Step the clock of all replicas every 10 s, to 40 min or 2 h before or after the right time. Needs a C compiler.
    #[arg(long)]
    pub clock_steps: bool,

    /// Duration.
    #[arg(long = "for", value_name = "DURATION", default_value = "10m")]
    pub duration: GoDuration,

    /// Number of requests to send per second, whether or not the previous ones were answered.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub rate: u32,
}

/// Where requests go to.
const TRAFFIC: &str = "traffic";

/// How often the stranger writes each target.
const BEAT: Duration = Duration::from_secs(1);

/// How long an API server may take to go by what it has stored.
const PROPAGATION: Duration = Duration::from_millis(400);

/// How many failures are told.
const TOLD: usize = 20;

/// How many replicas there are: one leads, and the others stand by.
const REPLICAS: usize = 3;

/// How often it is looked whether one has ended.
const LOOK: Duration = Duration::from_millis(100);

/// How long a clock stands by before it steps again.
const STEP: Duration = Duration::from_secs(10);

/// What went on, as far as it has been seen.
#[derive(Debug, Default)]
struct NightEvents {
    /// From each write of the stranger to when it was seen to be repaired.
    windows: Vec<(Instant, Instant)>,
    rotations: u32,
    /// How long it took after each kill until another replica led.
    takeovers: Vec<Duration>,
    steps: u32,
    /// How often a replica has ended by itself.
    ended: u32,
}

struct Night<'a> {
    arguments: &'a NightArguments,
    cluster: &'a TestCluster,
    stranger: Stranger,
    replicas: OperatorReplicas,
    world: Option<PreloadedWorld>,
    seen: RefCell<NightEvents>,
}

impl fmt::Display for NightArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CA rotations for {}", self.duration)?;
        if let Some(interval) = &self.kills_every {
            write!(f, ", the leader killed every {interval}")?;
        }
        if self.clock_steps {
            write!(f, ", the operator's clock stepping every {} s", STEP.as_secs())?;
        }
        write!(
            f,
            ", empty trust bundles every {} s; {} requests a second",
            BEAT.as_secs(),
            self.rate
        )
    }
}

/// Measures a bad night.
pub(super) async fn measure(
    arguments: &NightArguments,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let world = match arguments.clock_steps {
        true => Some(PreloadedWorld::new(cluster).await?),
        false => None,
    };
    let replicas = OperatorReplicas::start(cluster, REPLICAS, world.as_ref()).await?;
    let bundle = cluster.bundle("sample.v1")?;
    let installed = install(&cluster.client, "sample", NAMESPACE, &bundle);
    progress.step("Installing the sample bundle", installed).await?;
    sample::settled(cluster).await?;
    let namespace = json!({"metadata": {"name": TRAFFIC}});
    succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let widgets = Resource::widgets(&["v1", "v1beta1"], Expectation::Admitted);
    let mut load = Load::start_at_rate(&cluster.client, TRAFFIC, &[widgets], arguments.rate);
    let night = Night {
        arguments,
        cluster,
        stranger: Stranger::watch(&cluster.client, NAMESPACE, CERTIFICATE).await?,
        replicas,
        world,
        seen: RefCell::default(),
    };
    let detail = || {
        let (report, seen) = (load.report(), night.seen.borrow());
        format!(
            " ({} requests, {} failed, {} CA rotations, {} repairs)",
            report.requests,
            report.failed,
            seen.rotations,
            seen.windows.len()
        )
    };
    let ended = progress
        .watched("Living through the night", detail, night.go())
        .await;
    load.end().await;
    let report = load.report();
    let mut missed = Vec::new();
    if let Err(error) = ended {
        missed.push(format!("{error:#}"));
    }
    Ok(told(arguments, night.seen.into_inner(), &report, missed))
}

impl Night<'_> {
    /// All of it at once, until the stranger has done and all is repaired, or something ends that should not.
    async fn go(&self) -> anyhow::Result<()> {
        let others =
            async { tokio::try_join!(self.rotate(), self.kill(), self.step(), self.keep()).map(drop) };
        tokio::select! {
            ended = self.overwrite() => ended,
            ended = others => ended,
        }
    }

    async fn rotate(&self) -> anyhow::Result<()> {
        loop {
            // One that is killed again and again takes its time.
            let patience = self.arguments.duration.0.unsigned_abs();
            rotate(&self.cluster.client, NAMESPACE, CERTIFICATE, "ca", patience).await?;
            self.seen.borrow_mut().rotations += 1;
        }
    }

    /// Every target is written once in each beat, one after the other, as tools do.
    async fn overwrite(&self) -> anyhow::Result<()> {
        let count = u32::try_from(self.stranger.targets())?;
        let writing = (0..count).map(|target| self.overwrite_one(target, BEAT / count * target));
        try_join_all(writing).await.map(drop)
    }

    async fn overwrite_one(&self, target: u32, offset: Duration) -> anyhow::Result<()> {
        tokio::time::sleep(offset).await;
        let target = usize::try_from(target)?;
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (started, duration) = (Instant::now(), self.arguments.duration.0.unsigned_abs());
        while started.elapsed() < duration {
            beats.tick().await;
            let write = self.stranger.write(target, "").await?;
            // Which bundle is right changes with each rotation, and nobody but the operator writes one.
            let repaired = self
                .stranger
                .carries(target, &write, |bundle| !bundle.is_empty())
                .await?;
            self.seen.borrow_mut().windows.push((write.sent, repaired));
        }
        Ok(())
    }

    async fn kill(&self) -> anyhow::Result<()> {
        let Some(interval) = &self.arguments.kills_every else {
            return Ok(());
        };
        let mut kills = tokio::time::interval(interval.0.unsigned_abs());
        kills.set_missed_tick_behavior(MissedTickBehavior::Delay);
        kills.tick().await;
        loop {
            kills.tick().await;
            let takeover = self.replicas.kill_leader().await?;
            self.seen.borrow_mut().takeovers.push(takeover);
        }
    }

    /// Starts again what ends by itself.
    async fn keep(&self) -> anyhow::Result<()> {
        loop {
            tokio::time::sleep(LOOK).await;
            let ended = self.replicas.replace_ended().await?;
            self.seen.borrow_mut().ended += ended;
        }
    }

    async fn step(&self) -> anyhow::Result<()> {
        let Some(world) = &self.world else {
            return Ok(());
        };
        loop {
            tokio::time::sleep(STEP).await;
            world.step(self.seen.borrow().steps)?;
            self.seen.borrow_mut().steps += 1;
        }
    }
}

/// What the night comes to.
fn told(
    arguments: &NightArguments,
    seen: NightEvents,
    report: &Report,
    mut missed: Vec<String>,
) -> Measurement {
    let outside = outside(report, &seen.windows);
    let mut windows = Latencies::default();
    for (written, repaired) in &seen.windows {
        windows.record(*repaired - *written);
    }
    let mut takeovers = Latencies::default();
    for takeover in &seen.takeovers {
        takeovers.record(*takeover);
    }
    if seen.rotations == 0 {
        missed.push("no CA rotation was done".to_owned());
    }
    let mut table = FiguresTable::new(["", "count", "p50", "p99", "longest"]);
    for (title, count, times) in [
        ("repairs", seen.windows.len(), &windows),
        ("takeovers", seen.takeovers.len(), &takeovers),
    ] {
        let percentile = |percent| times.percentile(percent).map(short).unwrap_or_default();
        let [p50, p99, longest] = [50, 99, 100].map(percentile);
        table.row([title.to_owned(), count.to_string(), p50, p99, longest]);
    }
    Measurement {
        tables: table.to_string(),
        summary: format!(
            "{arguments}: {} CA rotations, {} steps of the clock, {} replicas ended by themselves; {} of {} requests failed while a target was overwritten, {} at other times; longest gap {}",
            seen.rotations,
            seen.steps,
            seen.ended,
            report.failed - u64::try_from(outside.len()).unwrap_or(u64::MAX),
            report.requests,
            outside.len(),
            short(report.longest_gap),
        ),
        failures: outside.into_iter().take(TOLD).collect(),
        missed,
    }
}

/// The requests that failed although no target was without its trust bundle.
fn outside(report: &Report, windows: &[(Instant, Instant)]) -> Vec<String> {
    let is_forgiven = |failure: &&Failure| {
        windows
            .iter()
            .any(|(written, repaired)| failure.overlaps(*written, *repaired + PROPAGATION))
    };
    let failures = report.failures.iter().filter(|failure| !is_forgiven(failure));
    failures.map(|failure| failure.text.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fails_while_a_target_is_overwritten_is_forgiven() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let failure = |sent, answered| Failure {
            sent: at(sent),
            answered: at(answered),
            text: sent.to_string(),
        };
        let report = Report {
            failures: vec![
                failure(0, 900),
                failure(500, 1000),
                failure(1050, 1060),
                failure(1499, 1600),
                failure(1501, 1600),
            ],
            ..Report::default()
        };
        assert_eq!(outside(&report, &[(at(1000), at(1100))]), ["0", "1501"]);
    }
}
