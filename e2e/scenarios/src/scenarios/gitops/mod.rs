//! GitOps tools write objects of Windlass, and the CRD of a bundle, with and without a conversion of its own.
//!
//! The API server sets `strategy: None` when a PUT omits the conversion, and when an apply removes a
//! conversion that it owns. Without the guard, this can only be repaired, not prevented.

mod engines;
mod readiness;
mod tool;

use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::Value;

use super::{
    contest::{BEAT, SECONDS},
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

pub(super) use self::{
    engines::{Engine, reverts_nothing},
    readiness::gitops_tools_see_installs_progress_succeed_and_fail,
};

/// The default duration of writes without a conversion.
const FIGHT: Duration = Duration::from_secs(4);

/// The conversions that each tool writes, in this order. Before the last one, the tool may own the
/// conversion.
const STANZAS: [Stanza; 5] = [
    Stanza::Absent,
    Stanza::Same,
    Stanza::Other,
    Stanza::None,
    Stanza::Absent,
];

/// The effect of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteOutcome {
    /// The write succeeded, and the conversion is unchanged.
    Kept,
    /// The write was rejected.
    Refused,
    /// The write succeeded, and the conversion has changed.
    Lost,
}

pub(super) async fn a_crd_applied_without_a_conversion_fails_no_call(
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
            anyhow::ensure!(answer.code == 200, "{tool:?} was rejected: {answer}");
            writes += 1;
            let after = sample::crd(cluster).await?;
            anyhow::ensure!(
                after["spec"] == before["spec"]
                    && after["metadata"]["generation"] == before["metadata"]["generation"]
                    && has_marks(&after, &before),
                "{tool:?} has changed the CRD: {after}"
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

pub(super) async fn another_conversion_fails_calls_only_until_it_is_repaired(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let windows = write_everything(cluster, |tool, stanza, outcome| {
        let expected = match (tool, stanza) {
            (Tool::Replace, _) | (_, Stanza::Other) => WriteOutcome::Lost,
            (_, Stanza::Absent | Stanza::Same) => WriteOutcome::Kept,
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
    traffic::check_failures_within(&report, &windows)
}

pub(super) async fn the_guard_protects_the_conversion_from_every_tool(
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
            (Tool::Replace, _) | (_, Stanza::Other) => WriteOutcome::Refused,
            (_, Stanza::Absent | Stanza::Same) => WriteOutcome::Kept,
            (_, Stanza::None) => return outcome != WriteOutcome::Lost,
        };
        outcome == expected
    })
    .await?;
    anyhow::ensure!(windows.is_empty(), "{} writes passed the guard", windows.len());
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Writes all [`STANZAS`] with every tool, one per beat, and repeats this for the requested duration. Returns
/// the periods in which the conversion was changed.
///
/// `is_expected` checks the writes of the first round except the last one of each tool: after them, tools may
/// own what they have written.
async fn write_everything(
    cluster: &TestCluster,
    is_expected: impl Fn(Tool, Stanza, WriteOutcome) -> bool,
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
                let outcome = WriteOutcome::from_response(&answer, conversion)?;
                let strategy = text(&answer.body, "/spec/conversion/strategy");
                tracing::info!(?tool, ?stanza, ?outcome, code = answer.code, strategy, "Wrote");
                if outcome == WriteOutcome::Lost {
                    windows.push((sent, wait_for_repair(cluster, &before).await?));
                }
                let is_judged = is_first && position + 1 < STANZAS.len();
                anyhow::ensure!(
                    !is_judged || is_expected(tool, stanza, outcome),
                    "{tool:?} with {stanza:?} is {outcome:?}: {answer}"
                );
                wait_until_restored(cluster, &before).await?;
            }
        }
        is_first = false;
    }
    Ok(windows)
}

impl WriteOutcome {
    fn from_response(answer: &RequestAnswer, conversion: &Value) -> anyhow::Result<Self> {
        Ok(match answer.code {
            200 if answer.body["spec"]["conversion"] == *conversion => Self::Kept,
            200 => Self::Lost,
            // Rejected by the guard, because of a conflict with another field manager, or as invalid.
            403 | 409 | 422 => Self::Refused,
            _ => bail!("unexpected response: {answer}"),
        })
    }
}

/// Waits until the conversion is restored, and returns when this was observed.
async fn wait_for_repair(cluster: &TestCluster, before: &Value) -> anyhow::Result<Instant> {
    until("the conversion is restored", PATIENCE, async || {
        let conversion = sample::crd(cluster).await?["spec"]["conversion"].take();
        Ok(if conversion == before["spec"]["conversion"] {
            Ok(Instant::now())
        } else {
            Err(conversion.to_string())
        })
    })
    .await
}

/// Waits until the CRD has its spec and the labels and annotations of Windlass again.
async fn wait_until_restored(cluster: &TestCluster, before: &Value) -> anyhow::Result<()> {
    until("the CRD is restored", PATIENCE, async || {
        let live = sample::crd(cluster).await?;
        Ok(check(
            live["spec"] == before["spec"] && has_marks(&live, before),
            || live.to_string(),
        ))
    })
    .await
}

/// Reports whether the CRD has every label and annotation that it had before.
fn has_marks(live: &Value, before: &Value) -> bool {
    ["labels", "annotations"].into_iter().all(|field| {
        let marks = before["metadata"][field].as_object();
        let mut marks = marks.into_iter().flatten();
        marks.all(|(name, value)| live["metadata"][field][name] == *value)
    })
}
