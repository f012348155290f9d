//! A GitOps tool keeps writing the CRD of a bundle, with and without a conversion of its own.
//!
//! The API server makes `strategy: None` of a CRD that is replaced by one without conversion, or from which
//! somebody takes the conversion that was his. Where nothing guards, that cannot be prevented, only repaired.

mod tool;

use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::Value;

use super::{
    fight::{BEAT, SECONDS},
    guard::replicas::{self, Replica},
    traffic,
};
use crate::{
    load::Latencies,
    request::{RequestAnswer, text},
    sample,
    steps::{PATIENCE, check, duration_in, until},
    test_cluster::TestCluster,
};

use self::tool::{Stanza, Tool};

/// How long tools write otherwise that have no conversion.
const FIGHT: Duration = Duration::from_secs(4);

/// What each tool writes, one after the other. When it writes the last, it may own the conversion.
const STANZAS: [Stanza; 5] = [
    Stanza::Absent,
    Stanza::Same,
    Stanza::Other,
    Stanza::None,
    Stanza::Absent,
];

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It was taken, and the conversion stayed.
    Kept,
    /// It was refused.
    Refused,
    /// It was taken, and the conversion became another.
    Lost,
}

pub(super) async fn a_definition_applied_without_a_conversion_costs_no_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    let before = sample::crd(cluster).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let duration = duration_in(SECONDS, FIGHT)?;
    let (started, mut beats, mut writes) = (Instant::now(), tokio::time::interval(BEAT), 0);
    while started.elapsed() < duration {
        for tool in [Tool::Apply, Tool::ForcedApply, Tool::ClientSideApply] {
            beats.tick().await;
            let answer = tool.write(&cluster.client, &sample::manifest()?).await?;
            anyhow::ensure!(answer.code == 200, "{tool:?} was refused: {answer}");
            writes += 1;
            let after = sample::crd(cluster).await?;
            anyhow::ensure!(
                after["spec"] == before["spec"]
                    && after["metadata"]["generation"] == before["metadata"]["generation"]
                    && is_marked(&after, &before),
                "{tool:?} has changed the definition: {after}"
            );
        }
    }
    load.at_least(50).await?;
    let report = traffic::finish(load).await?;
    tracing::info!(
        writes,
        requests = report.requests,
        failed = report.failed,
        reinitializing = report.reinitializing,
        "Applied without conversion"
    );
    Ok(())
}

pub(super) async fn another_conversion_costs_calls_only_until_it_is_repaired(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let windows = write_everything(cluster, |tool, stanza, outcome| {
        let expected = match (tool, stanza) {
            (Tool::Replace, _) | (_, Stanza::Other) => Outcome::Lost,
            (_, Stanza::Absent | Stanza::Same) => Outcome::Kept,
            (_, Stanza::None) => return true,
        };
        outcome == expected
    })
    .await?;
    sample::settled(cluster).await?;
    load.at_least(50).await?;
    let report = load.stop().await;
    let mut latencies = Latencies::default();
    for (written, repaired) in &windows {
        latencies.record(*repaired - *written);
    }
    tracing::info!(
        lost = windows.len(),
        p50 = ?latencies.percentile(50),
        p99 = ?latencies.percentile(99),
        longest = ?latencies.percentile(100),
        reinitializing = report.reinitializing,
        "Repaired"
    );
    traffic::failed_only_in(&report, &windows)
}

pub(super) async fn the_guard_keeps_the_conversion_from_every_tool(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    replicas::install_guard(cluster).await?;
    let replica = Replica::start(cluster, "one").await?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    replica.join(cluster).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let windows = write_everything(cluster, |tool, stanza, outcome| {
        let expected = match (tool, stanza) {
            (Tool::Replace, _) | (_, Stanza::Other) => Outcome::Refused,
            (_, Stanza::Absent | Stanza::Same) => Outcome::Kept,
            (_, Stanza::None) => return outcome != Outcome::Lost,
        };
        outcome == expected
    })
    .await?;
    anyhow::ensure!(windows.is_empty(), "{} writes passed the guard", windows.len());
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Writes with every tool what is in [`STANZAS`], one at each beat, and again for as long as is asked for. From when to
/// when the conversion was another.
///
/// `is_expected` judges the first round but for its last write: from then on tools may own what they wrote before.
async fn write_everything(
    cluster: &TestCluster,
    is_expected: impl Fn(Tool, Stanza, Outcome) -> bool,
) -> anyhow::Result<Vec<(Instant, Instant)>> {
    let before = sample::crd(cluster).await?;
    let conversion = &before["spec"]["conversion"];
    let duration = duration_in(SECONDS, Duration::ZERO)?;
    let (started, mut beats, mut windows) = (Instant::now(), tokio::time::interval(BEAT), Vec::new());
    let mut is_first = true;
    while is_first || started.elapsed() < duration {
        for tool in Tool::ALL {
            for (position, stanza) in STANZAS.into_iter().enumerate() {
                beats.tick().await;
                let manifest = stanza.in_manifest(conversion)?;
                let sent = Instant::now();
                let answer = tool.write(&cluster.client, &manifest).await?;
                let outcome = Outcome::of(&answer, conversion)?;
                let strategy = text(&answer.body, "/spec/conversion/strategy");
                tracing::info!(?tool, ?stanza, ?outcome, code = answer.code, strategy, "Wrote");
                if outcome == Outcome::Lost {
                    windows.push((sent, repaired(cluster, &before).await?));
                }
                let is_judged = is_first && position + 1 < STANZAS.len();
                anyhow::ensure!(
                    !is_judged || is_expected(tool, stanza, outcome),
                    "{tool:?} of {stanza:?} is {outcome:?}: {answer}"
                );
                is_settled(cluster, &before).await?;
            }
        }
        is_first = false;
    }
    Ok(windows)
}

// === impl Outcome ===

impl Outcome {
    fn of(answer: &RequestAnswer, conversion: &Value) -> anyhow::Result<Self> {
        Ok(match answer.code {
            200 if answer.body["spec"]["conversion"] == *conversion => Self::Kept,
            200 => Self::Lost,
            // By the guard; because others own a field; because it would make no sense.
            403 | 409 | 422 => Self::Refused,
            _ => bail!("neither taken nor refused: {answer}"),
        })
    }
}

/// Waits until the conversion is what it was before. When that was seen.
async fn repaired(cluster: &TestCluster, before: &Value) -> anyhow::Result<Instant> {
    until("the conversion is put back", PATIENCE, async || {
        let conversion = sample::crd(cluster).await?["spec"]["conversion"].take();
        Ok(if conversion == before["spec"]["conversion"] {
            Ok(Instant::now())
        } else {
            Err(conversion.to_string())
        })
    })
    .await
}

/// Waits until the CRD is what it was before, and is Windlass's.
async fn is_settled(cluster: &TestCluster, before: &Value) -> anyhow::Result<()> {
    until("the definition is as before", PATIENCE, async || {
        let live = sample::crd(cluster).await?;
        Ok(check(
            live["spec"] == before["spec"] && is_marked(&live, before),
            || live.to_string(),
        ))
    })
    .await
}

/// Whether the CRD has every label and annotation that it had before.
fn is_marked(live: &Value, before: &Value) -> bool {
    ["labels", "annotations"].into_iter().all(|field| {
        let marks = before["metadata"][field].as_object();
        let mut marks = marks.into_iter().flatten();
        marks.all(|(name, value)| live["metadata"][field][name] == *value)
    })
}
