//! An actor repeatedly writes another trust bundle into the targets, in each phase of a rotation.

mod actor;

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use super::{drift, foreign, rotation, traffic};
use crate::{
    load::Report,
    request::text,
    sample,
    steps::{CRDS, MUTATING, PATIENCE, VALIDATING, check, duration_in, get, list, succeed, until},
    test_cluster::TestCluster,
};

use self::actor::{Actor, ContestedObject, Fight, MANAGER};

/// The variable with the duration of each fight in seconds.
pub(super) const SECONDS: &str = "WINDLASS_E2E_FIGHT_SECONDS";

/// The default duration of each fight.
const FIGHT: Duration = Duration::from_secs(4);

/// The interval of the actor's writes.
pub(super) const BEAT: Duration = Duration::from_secs(1);

/// The number of immediate repairs of a target before the operator limits them to one per second.
const BURST: u64 = 60;

/// The step of the rotation at which a fight begins. The rotation continues during the fight as far as it
/// can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A rotation was requested, and waits until all targets have the next CA.
    Stable,
    /// The next CA has signed a certificate, which endpoints start to serve. The old CA is removed next.
    Signing,
    /// Another next CA was requested, which targets do not trust yet.
    Distributing,
}

pub(super) async fn an_older_trust_bundle_fails_no_call(cluster: &TestCluster) -> anyhow::Result<()> {
    let (report, _) = run_fights(cluster, str::to_owned).await?;
    report.check()
}

pub(super) async fn an_empty_trust_bundle_fails_calls_only_until_it_is_repaired(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let (report, fights) = run_fights(cluster, |_| String::new()).await?;
    traffic::check_failures_within(&report, &windows(&fights))
}

pub(super) async fn an_unrelated_trust_bundle_fails_calls_only_until_it_is_repaired(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let stranger = foreign::trust_bundle()?;
    let (report, fights) = run_fights(cluster, |_| stranger.clone()).await?;
    traffic::check_failures_within(&report, &windows(&fights))
}

/// An actor that reverts each repair: the operator slows down, keeps repairing, and succeeds in the end.
pub(super) async fn repairs_slow_down_while_another_client_reverts_them(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let path = format!("{VALIDATING}/platform");
    succeed(
        &cluster.client,
        "POST",
        VALIDATING,
        Some(&drift::configuration("ValidatingWebhookConfiguration")?),
    )
    .await?;
    rotation::wait_for_four_targets(cluster).await?;
    let target =
        ContestedObject::from_object(&get(&cluster.client, &path).await?.context("no target")?, &path);
    let actor = Actor::new(cluster, vec![target.clone()], foreign::trust_bundle()?);
    let (before, started) = (actor.generation(&target).await?, Instant::now());
    let answers = actor.revert_for(duration_in(SECONDS, FIGHT)?).await?;
    let writes = u64::try_from(actor.generation(&target).await? - before)?;
    let repairs = writes.saturating_sub(answers);
    let passed = started.elapsed().as_secs() + 1;
    tracing::info!(answers, repairs, seconds = passed, "Reverted every repair");
    anyhow::ensure!(
        repairs <= BURST + passed + 1,
        "{repairs} repairs in {passed} s, with a burst of {BURST} and one a second"
    );
    wait_for_contested_status(cluster, "platform", Some(MANAGER)).await?;
    wait_for_contested_event(cluster, "platform", Some(MANAGER)).await?;
    sample::settled(cluster).await?;
    Ok(())
}

/// Runs a fight under load at each stage of a rotation; `bundle` converts an older trust bundle to the one
/// that the actor writes.
async fn run_fights(
    cluster: &TestCluster,
    bundle: impl Fn(&str) -> String,
) -> anyhow::Result<(Report, Vec<Fight>)> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let mut older = sample::trust_bundle(cluster).await?;
    sample::rotate(cluster, "ca").await?;
    let targets = targets(cluster).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let mut fights = Vec::new();
    for stage in [Stage::Stable, Stage::Signing, Stage::Distributing] {
        let now = sample::trust_bundle(cluster).await?;
        let signed = generation(cluster).await?;
        let actor = Actor::new(cluster, targets.clone(), bundle(&older));
        let before = load.report();
        reach_stage(cluster, stage).await?;
        let fight = actor.write_for(duration_in(SECONDS, FIGHT)?, BEAT).await?;
        if fights.is_empty() {
            // `managedFields` does not record which manager removes a field.
            let by = (!bundle(&older).is_empty()).then_some(MANAGER);
            wait_for_contested_status(cluster, "widgets.sample.windlass.dev", by).await?;
            wait_for_contested_event(cluster, "widgets.sample.windlass.dev", by).await?;
        }
        // The requested rotation completes after the actor has stopped.
        if stage != Stage::Distributing {
            wait_for_new_ca(cluster, signed).await?;
        }
        sample::settled(cluster).await?;
        let (after, latencies) = (load.report(), fight.latencies());
        tracing::info!(
            ?stage,
            writes = fight.writes,
            repairs = fight.repairs,
            p50 = ?latencies.percentile(50),
            p99 = ?latencies.percentile(99),
            longest = ?latencies.percentile(100),
            phases = ?fight.phases,
            requests = after.requests - before.requests,
            failed = after.failed - before.failed,
            reinitializing = after.reinitializing - before.reinitializing,
            "Fought"
        );
        // Each write is repaired once, and during the fight a rotation may write each target once.
        let most = fight.writes + targets.len() as u64;
        anyhow::ensure!(
            fight.repairs <= most,
            "{} writes and {} repairs",
            fight.writes,
            fight.repairs
        );
        fights.push(fight);
        older = now;
    }
    load.at_least(50).await?;
    Ok((load.stop().await, fights))
}

/// Waits until a CA after generation `signed` signs.
async fn wait_for_new_ca(cluster: &TestCluster, signed: i64) -> anyhow::Result<()> {
    until("the rotation is complete", PATIENCE, async || {
        let generation = generation(cluster).await?;
        Ok(check(generation > signed, || format!("CA {generation} signs")))
    })
    .await
}

fn windows(fights: &[Fight]) -> Vec<(Instant, Instant)> {
    fights.iter().flat_map(|fight| fight.windows.clone()).collect()
}

/// The targets that receive traffic.
async fn targets(cluster: &TestCluster) -> anyhow::Result<Vec<ContestedObject>> {
    let mut targets = Vec::new();
    for collection in [CRDS, VALIDATING, MUTATING] {
        for object in list(&cluster.client, collection).await? {
            let path = format!("{collection}/{}", text(&object, "/metadata/name"));
            let target = ContestedObject::from_object(&object, &path);
            if !target.pointers.is_empty() {
                targets.push(target);
            }
        }
    }
    anyhow::ensure!(
        targets.len() == 3,
        "expected one target of each kind: {targets:?}"
    );
    Ok(targets)
}

async fn reach_stage(cluster: &TestCluster, stage: Stage) -> anyhow::Result<()> {
    if stage == Stage::Distributing {
        // A next CA whose lifetime exceeds the requested one is replaced.
        let path = sample::BUNDLE_DEPLOYMENT;
        let patch = json!({"spec": {"certificates": {"caDuration": "8000h"}}});
        succeed(&cluster.client, "PATCH", path, Some(&patch)).await?;
    } else {
        sample::request_rotation(cluster, "ca").await?;
    }
    if stage != Stage::Signing {
        return Ok(());
    }
    until("the next CA signs", PATIENCE, async || {
        let phase = phase(cluster).await?;
        Ok(check(phase == "Signing", || phase))
    })
    .await
}

/// Waits until the status lists the target as contested by exactly `by`.
async fn wait_for_contested_status(
    cluster: &TestCluster,
    target: &str,
    by: Option<&str>,
) -> anyhow::Result<()> {
    until(
        &format!("the status lists the manager that contests {target}"),
        PATIENCE,
        async || {
            let certificate = certificate(cluster).await?;
            let contested = &certificate["status"]["targets"]["contested"];
            let is_named = contested.as_array().is_some_and(|listed| {
                listed.iter().any(|listed| {
                    listed["name"] == target && text(listed, "/fieldManager") == by.unwrap_or_default()
                })
            });
            Ok(check(is_named, || contested.to_string()))
        },
    )
    .await
}

/// Waits until an event reports that the target is contested, and by which manager if that is known.
async fn wait_for_contested_event(
    cluster: &TestCluster,
    target: &str,
    by: Option<&str>,
) -> anyhow::Result<()> {
    let path = "/apis/events.k8s.io/v1/namespaces/sample-system/events";
    until(
        &format!("an event reports the manager that contests {target}"),
        PATIENCE,
        async || {
            let events = list(&cluster.client, path).await?;
            let is_named = events.iter().any(|event| {
                let note = text(event, "/note");
                text(event, "/reason") == "TargetContested"
                    && note.contains(target)
                    && by.is_none_or(|by| note.contains(by))
            });
            Ok(check(is_named, || format!("{} events", events.len())))
        },
    )
    .await
}

async fn certificate(cluster: &TestCluster) -> anyhow::Result<Value> {
    let path = sample::SERVING_CERTIFICATE;
    get(&cluster.client, path).await?.context("no ServingCertificate")
}

async fn phase(cluster: &TestCluster) -> anyhow::Result<String> {
    Ok(text(&certificate(cluster).await?, "/status/phase").to_owned())
}

async fn generation(cluster: &TestCluster) -> anyhow::Result<i64> {
    let certificate = certificate(cluster).await?;
    let generation = certificate.pointer("/status/ca/current/generation");
    generation.and_then(Value::as_i64).context("no CA")
}
