//! Somebody keeps putting another trust bundle into the targets, whatever the rotation is at.

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

/// Set to the seconds of each fight.
pub(super) const SECONDS: &str = "WINDLASS_E2E_FIGHT_SECONDS";

/// How long each fight takes otherwise.
const FIGHT: Duration = Duration::from_secs(4);

/// How often the actor writes.
pub(super) const BEAT: Duration = Duration::from_secs(1);

/// How many repairs of a target may follow each other before there is one a second.
const BURST: u64 = 60;

/// What the rotation is at when a fight begins. It goes on as far as it can during the fight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A rotation is asked for, and held until the targets carry the next CA again.
    Stable,
    /// The next CA has signed, and endpoints are coming to serve that. Retiring follows.
    Signing,
    /// Another next CA is asked for, which targets do not know yet.
    Distributing,
}

pub(super) async fn an_older_trust_bundle_costs_no_call(cluster: &TestCluster) -> anyhow::Result<()> {
    let (report, _) = fights(cluster, str::to_owned).await?;
    report.check()
}

pub(super) async fn an_empty_trust_bundle_costs_calls_only_until_it_is_repaired(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let (report, fights) = fights(cluster, |_| String::new()).await?;
    traffic::failed_only_in(&report, &windows(&fights))
}

pub(super) async fn a_strangers_trust_bundle_costs_calls_only_until_it_is_repaired(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let stranger = foreign::trust_bundle()?;
    let (report, fights) = fights(cluster, |_| stranger.clone()).await?;
    traffic::failed_only_in(&report, &windows(&fights))
}

/// Two that answer each other's writes: the operator slows down, does not give up, and heals.
pub(super) async fn an_actor_that_answers_every_repair_is_slowed_down(
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
    rotation::one_more_target(cluster).await?;
    let target = ContestedObject::of(&get(&cluster.client, &path).await?.context("no target")?, &path);
    let actor = Actor::new(cluster, vec![target.clone()], foreign::trust_bundle()?);
    let (before, started) = (actor.generation(&target).await?, Instant::now());
    let answers = actor.answer_for(duration_in(SECONDS, FIGHT)?).await?;
    let writes = u64::try_from(actor.generation(&target).await? - before)?;
    let repairs = writes.saturating_sub(answers);
    let passed = started.elapsed().as_secs() + 1;
    tracing::info!(answers, repairs, seconds = passed, "Answered every repair");
    anyhow::ensure!(
        repairs <= BURST + passed + 1,
        "{repairs} repairs in {passed} s, with {BURST} at once and one a second"
    );
    named(cluster, "platform", Some(MANAGER)).await?;
    announced(cluster, "platform", Some(MANAGER)).await?;
    sample::settled(cluster).await?;
    Ok(())
}

/// A fight at each stage of a rotation, under load; `bundle` makes what is put into the targets from an older bundle of
/// ours.
async fn fights(
    cluster: &TestCluster,
    bundle: impl Fn(&str) -> String,
) -> anyhow::Result<(Report, Vec<Fight>)> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let mut older = sample::trust_bundle(cluster).await?;
    sample::rotate(cluster, "ca").await?;
    let targets = targets(cluster).await?;
    let load = traffic::start_moderately(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let mut fights = Vec::new();
    for stage in [Stage::Stable, Stage::Signing, Stage::Distributing] {
        let now = sample::trust_bundle(cluster).await?;
        let signed = generation(cluster).await?;
        let actor = Actor::new(cluster, targets.clone(), bundle(&older));
        let before = load.report();
        bring_to(cluster, stage).await?;
        let fight = actor.write_for(duration_in(SECONDS, FIGHT)?, BEAT).await?;
        if fights.is_empty() {
            // Who takes a field away leaves no trace of it in `managedFields`.
            let by = (!bundle(&older).is_empty()).then_some(MANAGER);
            named(cluster, "widgets.sample.windlass.dev", by).await?;
            announced(cluster, "widgets.sample.windlass.dev", by).await?;
        }
        // What was asked for is done once the actor is quiet.
        if stage != Stage::Distributing {
            signs_after(cluster, signed).await?;
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
        // Each write is repaired once, and a rotation may give each target its own new trust bundle meanwhile.
        let most = fight.writes + targets.len() as u64;
        anyhow::ensure!(
            fight.repairs <= most,
            "{} writes were answered by {} repairs",
            fight.writes,
            fight.repairs
        );
        fights.push(fight);
        older = now;
    }
    load.at_least(50).await?;
    Ok((load.stop().await, fights))
}

/// Waits until a later CA than this one signs.
async fn signs_after(cluster: &TestCluster, signed: i64) -> anyhow::Result<()> {
    until("the rotation is done", PATIENCE, async || {
        let generation = generation(cluster).await?;
        Ok(check(generation > signed, || format!("CA {generation} signs")))
    })
    .await
}

fn windows(fights: &[Fight]) -> Vec<(Instant, Instant)> {
    fights.iter().flat_map(|fight| fight.windows.clone()).collect()
}

/// Every target that traffic goes through.
async fn targets(cluster: &TestCluster) -> anyhow::Result<Vec<ContestedObject>> {
    let mut targets = Vec::new();
    for collection in [CRDS, VALIDATING, MUTATING] {
        for object in list(&cluster.client, collection).await? {
            let path = format!("{collection}/{}", text(&object, "/metadata/name"));
            let target = ContestedObject::of(&object, &path);
            if !target.pointers.is_empty() {
                targets.push(target);
            }
        }
    }
    anyhow::ensure!(targets.len() == 3, "not one target of each kind: {targets:?}");
    Ok(targets)
}

async fn bring_to(cluster: &TestCluster, stage: Stage) -> anyhow::Result<()> {
    if stage == Stage::Distributing {
        // A next CA that would live longer than is asked for is replaced.
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

/// Waits until the status names the target as contested, by `by` and nobody else.
async fn named(cluster: &TestCluster, target: &str, by: Option<&str>) -> anyhow::Result<()> {
    until(
        &format!("the status says who contests {target}"),
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

/// Waits until an event says that the target is contested, by `by` if that can be known.
async fn announced(cluster: &TestCluster, target: &str, by: Option<&str>) -> anyhow::Result<()> {
    let path = "/apis/events.k8s.io/v1/namespaces/sample-system/events";
    until(
        &format!("an event says who contests {target}"),
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
