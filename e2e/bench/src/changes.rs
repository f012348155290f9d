//! How long it takes until all targets carry a changed CA, beside a client that does nothing else.

use std::{
    fmt,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::json;
use windlass_scenarios::{
    operator::{OperatorProcess, Running},
    progress::StepPrinter,
    steps::succeed,
    test_cluster::TestCluster,
};

use super::{
    bare_client,
    figures::{mebibytes, median, requests, short, since},
    measurement::Measurement,
    stranger::Stranger,
    table::FiguresTable,
    target_crowd::{CrowdKind, CrowdSource, TargetCrowd},
};

/// How changes are measured: the CA of many targets is replaced, then a client without an operator writes the same into them;
/// then all are empty when the operator starts.
#[derive(Clone, Debug, Args)]
pub struct ChangeArguments {
    /// Number of targets.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub targets: u32,

    /// What they are.
    #[arg(long, value_enum, default_value_t)]
    pub kind: CrowdKind,

    /// Whose CA they ask for.
    #[arg(long, value_enum, default_value_t)]
    pub source: CrowdSource,

    /// Let somebody apply the targets, server-side, so that the operator has to give their fields back.
    #[arg(long)]
    pub applied: bool,

    /// How often each is done.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub rounds: u32,
}

/// Where the targets ask for a trust bundle.
const NAMESPACE: &str = "changes";

/// The source of the trust bundle, and the Service that is called.
const SOURCE: &str = "hook";

/// How long the API server has to digest what was written.
const REST: Duration = Duration::from_secs(15);

/// One change of all targets.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Until the last target carried it; for a rotation, since the first did.
    took: Duration,
    /// How long the operator computed for it, and for what came after it.
    computed: Duration,
}

struct ChangeRun<'a> {
    cluster: &'a TestCluster,
    half: &'a OperatorProcess,
    crowd: &'a TargetCrowd,
    stranger: Stranger,
    rounds: u32,
}

impl fmt::Display for ChangeArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            targets,
            kind,
            rounds,
            ..
        } = self;
        let applied = if self.applied {
            " that somebody applies"
        } else {
            ""
        };
        let source = match self.source {
            CrowdSource::Certificate => "ServingCertificate",
            CrowdSource::Secret => "Secret",
        };
        write!(
            f,
            "{targets} {}{applied}: the CA of their {source} changes {rounds} times, and the operator starts {rounds} times beside empty ones",
            kind.noun()
        )
    }
}

/// Measures changes. The operator's requests are counted in a last round, for a proxy takes time.
pub(super) async fn measure(
    arguments: &ChangeArguments,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let crowd = TargetCrowd {
        namespace: NAMESPACE,
        certificate: SOURCE,
        source: arguments.source,
        kind: arguments.kind,
        targets: arguments.targets,
        applied: arguments.applied,
    };
    let title = format!("Creating {} {}", arguments.targets, arguments.kind.noun());
    progress.step(&title, fill(cluster, &crowd)).await?;
    // Of people who install no bundle.
    let half = cluster.certificates_half().await?;
    let run = ChangeRun {
        cluster,
        half: &half,
        crowd: &crowd,
        stranger: Stranger::watch(&cluster.client, NAMESPACE, SOURCE).await?,
        rounds: arguments.rounds,
    };
    let operator = half.start()?;
    progress
        .step(
            "Injecting for the first time",
            run.stranger.all_carry(is_something),
        )
        .await?;
    let changes = progress.step("Changing the CA", run.changes(&operator)).await?;
    let (memory, peak) = (operator.memory()?, operator.peak_memory()?);
    operator.stop().await?;
    let bare = progress.step("Writing without an operator", run.bare()).await?;
    let starts = progress
        .step("Starting beside empty targets", run.starts())
        .await?;
    let counted = progress
        .step("Counting the operator's requests", run.counted())
        .await?;
    progress
        .step("Removing the targets", crowd.remove(&cluster.client))
        .await?;
    let took = |rounds: &[Round]| median(rounds.iter().map(|round| round.took));
    let computed = |rounds: &[Round]| median(rounds.iter().map(|round| round.computed));
    let ratio = |rounds: &[Round]| took(rounds).as_secs_f64() / took(&bare).as_secs_f64();
    Ok(Measurement {
        tables: [
            table(&[("change", &changes), ("start", &starts), ("bare client", &bare)]).to_string(),
            counted,
            format!(
                "Memory of the operator: {} after the changes, {} at most.\n",
                mebibytes(memory),
                mebibytes(peak)
            ),
        ]
        .join("\n"),
        failures: Vec::new(),
        missed: Vec::new(),
        summary: format!(
            "{} {}: a change takes {} ({:.2} times as long as a bare client, {} of CPU), a start {} ({:.2} times, {} of CPU)",
            arguments.targets,
            arguments.kind.noun(),
            short(took(&changes)),
            ratio(&changes),
            short(computed(&changes)),
            short(took(&starts)),
            ratio(&starts),
            short(computed(&starts)),
        ),
    })
}

async fn fill(cluster: &TestCluster, crowd: &TargetCrowd) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    crowd.create(&cluster.client).await
}

fn is_something(bundle: &str) -> bool {
    !bundle.is_empty()
}

impl ChangeRun<'_> {
    async fn changes(&self, operator: &Running) -> anyhow::Result<Vec<Round>> {
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            tokio::time::sleep(REST).await;
            let before = self.stranger.carried(0)?;
            let computed = operator.cpu_time()?;
            let changed = self.crowd.change_ca(&self.cluster.client).await?;
            let (first, last) = self.all_differ_from(&before).await?;
            tokio::time::sleep(REST).await;
            let begun = match self.crowd.source {
                // A rotation does other things first.
                CrowdSource::Certificate => first,
                CrowdSource::Secret => changed,
            };
            rounds.push(Round {
                took: last.saturating_duration_since(begun),
                computed: operator.cpu_time()? - computed,
            });
        }
        Ok(rounds)
    }

    /// The same writes by a client that knows what to write.
    async fn bare(&self) -> anyhow::Result<Vec<Round>> {
        let bundle = self.stranger.carried(0)?;
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            self.empty_all().await?;
            let started = Instant::now();
            bare_client::write_all(&self.stranger, &bundle).await?;
            let (_, last) = self.stranger.all_carry(is_something).await?;
            rounds.push(Round {
                took: last.saturating_duration_since(started),
                computed: Duration::ZERO,
            });
        }
        Ok(rounds)
    }

    /// The operator starts beside targets that carry nothing.
    async fn starts(&self) -> anyhow::Result<Vec<Round>> {
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            self.empty_all().await?;
            let started = Instant::now();
            let operator = self.half.start()?;
            let (_, last) = self.stranger.all_carry(is_something).await?;
            rounds.push(Round {
                took: last.saturating_duration_since(started),
                computed: operator.cpu_time()?,
            });
            operator.stop().await?;
        }
        Ok(rounds)
    }

    async fn empty_all(&self) -> anyhow::Result<()> {
        tokio::time::sleep(REST).await;
        bare_client::write_all(&self.stranger, "").await?;
        self.stranger.all_carry(str::is_empty).await?;
        tokio::time::sleep(REST).await;
        Ok(())
    }

    /// What the operator asks the API server for when the CA changes.
    async fn counted(&self) -> anyhow::Result<String> {
        let (program, proxy) = self.cluster.proxied(self.half).await?;
        let operator = program.start()?;
        operator.ready().await?;
        tokio::time::sleep(REST).await;
        let carried = self.stranger.carried(0)?;
        let before = proxy.requests();
        self.crowd.change_ca(&self.cluster.client).await?;
        self.all_differ_from(&carried).await?;
        let injected = since(&before, proxy.requests()).values().sum::<u64>();
        tokio::time::sleep(REST).await;
        let sent = since(&before, proxy.requests());
        operator.stop().await?;
        Ok(format!(
            "{}{injected} of them until the last target carried the new CA.\n",
            requests(&sent, "a target", self.stranger.targets())
        ))
    }

    async fn all_differ_from(&self, before: &str) -> anyhow::Result<(Instant, Instant)> {
        let is_other = |bundle: &str| is_something(bundle) && bundle != before;
        self.stranger.all_carry(is_other).await
    }
}

fn table(measured: &[(&str, &Vec<Round>)]) -> FiguresTable {
    let mut table = FiguresTable::new(["", "until the last carries it", "CPU of the operator"]);
    for (title, rounds) in measured {
        for (number, round) in (1..).zip(rounds.iter()) {
            table.row([
                format!("{title}, round {number}"),
                short(round.took),
                short(round.computed),
            ]);
        }
    }
    table
}
