//! How soon targets carry their trust bundle again, one beside many and many at once.

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use windlass_scenarios::{
    load::Latencies,
    progress::StepPrinter,
    request::text,
    steps::{get, succeed},
    test_cluster::TestCluster,
};

use super::{
    bare_client,
    figures::{self, requests, short, since},
    measurement::Measurement,
    stranger::{ForeignWrite, Stranger},
    table::FiguresTable,
    target_crowd::{CrowdKind, CrowdSource, TargetCrowd},
};

/// How repairs are measured: one target at a time loses its trust bundle, then all do at once, and a client without an
/// operator does the same writes.
#[derive(Clone, Debug, Args)]
pub struct RepairArguments {
    /// Number of targets of one ServingCertificate.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub targets: u32,

    /// What they are.
    #[arg(long, value_enum, default_value_t)]
    pub kind: CrowdKind,

    /// Number of targets that lose their trust bundle one after the other.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub single: u32,

    /// How often all targets lose it at once, and how often the client repairs all.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub rounds: u32,
}

/// Where the targets ask for a trust bundle.
const NAMESPACE: &str = "repairs";

/// The ServingCertificate, and its Service.
const CERTIFICATE: &str = "hook";

/// How far the next target is from the one before: the operator slows down for a target that is overwritten again and
/// again, and neighbours were created together.
const STRIDE: usize = 7919;

/// The pause between two targets that are overwritten one after the other.
const PAUSE: Duration = Duration::from_millis(50);

/// How long the API server has to digest what was written.
const REST: Duration = Duration::from_secs(15);

/// How long the first injections may take.
const INJECTED: Duration = Duration::from_secs(900);

/// How long all targets were without their trust bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FloodTimes {
    /// From the first to the last write that took it away.
    overwriting: Duration,
    /// From the first such write until all carry it again.
    from_first: Duration,
    /// From the last such write until all carry it again.
    from_last: Duration,
}

/// How long one target at a time was without its trust bundle: from the answer, and from the request that took it away.
struct SingleTimes(Latencies, Latencies);

struct RepairRun<'a> {
    cluster: &'a TestCluster,
    stranger: Stranger,
    /// The trust bundle, in base64.
    right: String,
}

impl fmt::Display for RepairArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            targets,
            kind,
            single,
            rounds,
        } = self;
        write!(
            f,
            "{targets} {}: {single} of them lose their trust bundle one after the other, and all at once {rounds} times",
            kind.noun()
        )
    }
}

/// Measures repairs. The operator's requests are counted in a last round, for a proxy takes time.
pub(super) async fn measure(
    arguments: &RepairArguments,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let crowd = TargetCrowd {
        namespace: NAMESPACE,
        certificate: CERTIFICATE,
        source: CrowdSource::Certificate,
        applied: false,
        kind: arguments.kind,
        targets: arguments.targets,
    };
    let operator = cluster.operator.start()?;
    let title = format!("Creating {} {}", arguments.targets, arguments.kind.noun());
    progress.step(&title, fill(cluster, &crowd)).await?;
    let run = RepairRun {
        cluster,
        stranger: Stranger::watch(&cluster.client, NAMESPACE, CERTIFICATE).await?,
        right: trust_bundle(cluster).await?,
    };
    tokio::time::sleep(REST).await;
    let singles = progress
        .step(
            "Overwriting one after the other",
            run.one_by_one(arguments.single),
        )
        .await?;
    let repaired = progress
        .step("Overwriting all at once", run.floods(arguments.rounds))
        .await?;
    operator.stop().await?;
    let bare = progress
        .step("Repairing without an operator", run.bare(arguments.rounds))
        .await?;
    let counted = progress
        .step("Counting the operator's requests", run.counted())
        .await?;
    progress
        .step("Removing the targets", crowd.remove(&cluster.client))
        .await?;
    Ok(Measurement {
        tables: [
            singles_table(&singles).to_string(),
            floods_table(&[("operator", &repaired), ("bare client", &bare)]).to_string(),
            counted,
        ]
        .join("\n"),
        failures: Vec::new(),
        missed: Vec::new(),
        summary: format!(
            "{} {}: one is repaired within {} (p99); all take {} times as long as by a bare client",
            arguments.targets,
            arguments.kind.noun(),
            singles.0.percentile(99).map(short).unwrap_or_default(),
            ratios(&repaired, &bare),
        ),
    })
}

/// Creates the targets, and waits until they carry the trust bundle.
async fn fill(cluster: &TestCluster, crowd: &TargetCrowd) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    crowd.create(&cluster.client).await?;
    crowd.injected(&cluster.client, INJECTED).await
}

async fn trust_bundle(cluster: &TestCluster) -> anyhow::Result<String> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{CERTIFICATE}-cert");
    let secret = get(&cluster.client, &path).await?.unwrap_or_default();
    let bundle = text(&secret, "/data/ca.crt");
    anyhow::ensure!(!bundle.is_empty(), "{path} has no ca.crt");
    Ok(bundle.to_owned())
}

impl RepairRun<'_> {
    async fn one_by_one(&self, count: u32) -> anyhow::Result<SingleTimes> {
        let mut times = SingleTimes(Latencies::default(), Latencies::default());
        let mut target = 0;
        for _ in 0..count {
            target = (target + STRIDE) % self.stranger.targets();
            let write = self.stranger.write(target, "").await?;
            let repaired = self.is_right(target, &write).await?;
            times.0.record(write.until(repaired));
            times.1.record(repaired.saturating_duration_since(write.sent));
            tokio::time::sleep(PAUSE).await;
        }
        Ok(times)
    }

    /// All lose their trust bundle while the operator runs.
    async fn floods(&self, rounds: u32) -> anyhow::Result<Vec<FloodTimes>> {
        let mut floods = Vec::new();
        for _ in 0..rounds {
            tokio::time::sleep(REST).await;
            let written = bare_client::write_all(&self.stranger, "").await?;
            let end = self.all_are_right(&written).await?;
            floods.push(FloodTimes::new(&written, end));
        }
        Ok(floods)
    }

    /// All lose their trust bundle, and then a client gives it back.
    async fn bare(&self, rounds: u32) -> anyhow::Result<Vec<FloodTimes>> {
        let mut floods = Vec::new();
        for _ in 0..rounds {
            tokio::time::sleep(REST).await;
            let overwritten = bare_client::write_all(&self.stranger, "").await?;
            let overwriting = FloodTimes::new(&overwritten, Instant::now()).overwriting;
            tokio::time::sleep(REST).await;
            let repaired = bare_client::write_all(&self.stranger, &self.right).await?;
            let end = self.all_are_right(&repaired).await?;
            let repairing = FloodTimes::new(&repaired, end);
            floods.push(FloodTimes {
                overwriting,
                from_first: overwriting + repairing.from_first,
                from_last: repairing.from_first,
            });
        }
        Ok(floods)
    }

    /// What the operator asks the API server for when all lose their trust bundle.
    async fn counted(&self) -> anyhow::Result<String> {
        let (program, proxy) = self.cluster.proxied(&self.cluster.operator).await?;
        let operator = program.start()?;
        operator.ready().await?;
        tokio::time::sleep(REST).await;
        let before = proxy.requests();
        let written = bare_client::write_all(&self.stranger, "").await?;
        self.all_are_right(&written).await?;
        tokio::time::sleep(REST).await;
        let sent = since(&before, proxy.requests());
        operator.stop().await?;
        Ok(requests(&sent, "a repair", self.stranger.targets()).to_string())
    }

    /// Waits until every target carries the trust bundle again that was in it before it was written.
    async fn all_are_right(&self, written: &[ForeignWrite]) -> anyhow::Result<Instant> {
        let mut repaired = Vec::new();
        for (target, write) in written.iter().enumerate() {
            repaired.push(self.is_right(target, write).await?);
        }
        repaired.into_iter().max().context("no target")
    }

    async fn is_right(&self, target: usize, write: &ForeignWrite) -> anyhow::Result<Instant> {
        let is_right = |bundle: &str| bundle == self.right;
        self.stranger.carries(target, write, is_right).await
    }
}

impl FloodTimes {
    /// Of writes one after the other, until `end`.
    fn new(written: &[ForeignWrite], end: Instant) -> Self {
        let first = written.iter().map(|write| write.sent).min().unwrap_or(end);
        let last = written.iter().map(|write| write.answered).max().unwrap_or(end);
        Self {
            overwriting: last - first,
            from_first: end.max(last) - first,
            from_last: end.saturating_duration_since(last),
        }
    }
}

fn singles_table(singles: &SingleTimes) -> FiguresTable {
    let mut table = FiguresTable::new(["one at a time", "p50", "p99", "longest"]);
    for (title, times) in [
        ("after the answer", &singles.0),
        ("after the request", &singles.1),
    ] {
        let percentile = |percent| times.percentile(percent).map(short).unwrap_or_default();
        table.row([title.to_owned(), percentile(50), percentile(99), percentile(100)]);
    }
    table
}

fn floods_table(floods: &[(&str, &Vec<FloodTimes>)]) -> FiguresTable {
    let mut table = FiguresTable::new([
        "all at once",
        "overwriting",
        "all right since the first",
        "since the last",
    ]);
    for (title, rounds) in floods {
        for (number, round) in (1..).zip(rounds.iter()) {
            let times = [round.overwriting, round.from_first, round.from_last].map(short);
            let [overwriting, first, last] = times;
            table.row([format!("{title}, round {number}"), overwriting, first, last]);
        }
    }
    table
}

/// How much longer the operator takes than a client, by the median round. A client overwrites and repairs one after the other,
/// the operator repairs meanwhile: so all of it is compared, what is left when the overwriting is taken away, and what comes
/// after it.
fn ratios(operator: &[FloodTimes], client: &[FloodTimes]) -> String {
    let median = |rounds: &[FloodTimes], time: fn(&FloodTimes) -> Duration| {
        figures::median(rounds.iter().map(time)).as_secs_f64()
    };
    let repairing = median(client, |round| round.from_last);
    let whole = median(operator, |round| round.from_first);
    format!(
        "{:.2} in all, {:.2} without the time of overwriting, {:.2} after it",
        whole / median(client, |round| round.from_first),
        (whole - median(client, |round| round.overwriting)) / repairing,
        median(operator, |round| round.from_last) / repairing,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(overwriting: u64, from_first: u64, from_last: u64) -> FloodTimes {
        let [overwriting, from_first, from_last] =
            [overwriting, from_first, from_last].map(Duration::from_secs);
        FloodTimes {
            overwriting,
            from_first,
            from_last,
        }
    }

    #[test]
    fn a_repair_is_compared_with_that_of_a_client_by_the_median_round() {
        let operator = [times(9, 15, 6), times(9, 14, 4), times(9, 100, 90)];
        let client = [times(5, 10, 5)];
        assert_eq!(
            ratios(&operator, &client),
            "1.50 in all, 2.00 without the time of overwriting, 1.20 after it"
        );
    }
}
