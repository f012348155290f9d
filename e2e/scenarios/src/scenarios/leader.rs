//! Several replicas of the operator: one leads, and whatever becomes of it, no request fails and nothing is done twice.

use std::time::{Duration, Instant};

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use windlass_object::names;

use super::traffic;
use crate::{
    load::Load,
    operator::Running,
    proxy::{Cut, Proxy},
    request::{self, text},
    sample,
    steps::{LEASE, PATIENCE, VALIDATING, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// How long a takeover may take after the leader was killed, with the lease times that are the default.
const TAKEOVER: Duration = Duration::from_secs(20);

/// How long it may take after the leader was asked to end: no Lease is waited for, which would take 15 s.
const HANDOVER: Duration = Duration::from_secs(5);

/// The write of a rotation at which its leader is interrupted: the next CA signs already, and not all that follows from
/// that is done.
const MIDDLE: u64 = 2;

/// A target that asks for a Secret by its name.
const DIRECT: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/direct";

/// Where it has its trust bundle.
const DIRECT_CA_BUNDLE: &str = "/webhooks/0/clientConfig/caBundle";

/// Where a CRD has its trust bundle.
const CA_BUNDLE: &str = "/spec/conversion/webhook/clientConfig/caBundle";

/// Two replicas under load, each behind a proxy of its own.
struct Replicas {
    leader: Running,
    leaders_proxy: Proxy,
    standby: Running,
    standbys_proxy: Proxy,
    load: Load,
    /// What the rotation began with.
    before: Generations,
}

/// What tells how often a rotation was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Generations {
    /// Of the CA that signs.
    authority: i64,
    /// Of the CRD that is a target: one more for each write of its spec.
    target: i64,
}

pub(super) async fn the_next_leader_finishes_the_rotation_of_one_that_was_killed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let replicas = Replicas::start(cluster).await?;
    replicas.leaders_proxy.cut_at(MIDDLE, Cut::After);
    request_rotation(cluster).await?;
    tokio::time::timeout(PATIENCE, replicas.leaders_proxy.closed())
        .await
        .context("the rotation did not begin")?;
    replicas.leader.crash().await?;
    let takeover = leads(&replicas.standby, TAKEOVER).await?;
    finished(cluster, replicas.before, replicas.load).await?;
    tracing::info!(
        seconds = takeover.as_secs_f32(),
        writes = replicas.standbys_proxy.writes(),
        "Another replica leads after kill -9, and has finished the rotation"
    );
    replicas.standby.stop().await
}

pub(super) async fn a_paused_leader_writes_nothing_when_it_goes_on(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let mut replicas = Replicas::start(cluster).await?;
    let proxy = &replicas.leaders_proxy;
    // It has read the Secrets for its next step, and stands still before it can do that.
    proxy.hold_reads_after(1);
    request_rotation(cluster).await?;
    tokio::time::timeout(PATIENCE, proxy.held())
        .await
        .context("the rotation did not begin")?;
    replicas.leader.pause().await?;
    let takeover = leads(&replicas.standby, TAKEOVER).await?;
    finished(cluster, replicas.before, replicas.load).await?;
    let (writes, log) = (proxy.writes(), proxy.log().len());
    proxy.release();
    replicas.leader.resume().await?;
    let status = replicas.leader.ended().await?;
    anyhow::ensure!(!status.success(), "it ended as if it had been asked to");
    anyhow::ensure!(
        proxy.writes() == writes,
        "written by the leader of before: {:?}",
        &proxy.log()[log..]
    );
    settled_at(cluster, replicas.before.after_one()).await?;
    tracing::info!(
        seconds = takeover.as_secs_f32(),
        writes_after_resume = proxy.writes() - writes,
        "Another replica leads after SIGSTOP; the one before ended after SIGCONT"
    );
    replicas.standby.stop().await
}

pub(super) async fn a_leader_that_is_asked_to_end_hands_over_at_once(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let replicas = Replicas::start(cluster).await?;
    let begun = replicas.leaders_proxy.writes() + MIDDLE;
    request_rotation(cluster).await?;
    until("the rotation has begun", PATIENCE, async || {
        let writes = replicas.leaders_proxy.writes();
        Ok(check(writes >= begun, || format!("{writes} writes")))
    })
    .await?;
    replicas.leader.stop().await?;
    let handover = leads(&replicas.standby, HANDOVER).await?;
    finished(cluster, replicas.before, replicas.load).await?;
    tracing::info!(
        seconds = handover.as_secs_f32(),
        "Another replica leads after SIGTERM"
    );
    replicas.standby.stop().await
}

pub(super) async fn a_target_is_repaired_while_nobody_leads(cluster: &TestCluster) -> anyhow::Result<()> {
    let replicas = Replicas::start(cluster).await?;
    traffic::finish(replicas.load).await?;
    let copied = copy_trust(cluster).await?;
    carries(cluster, DIRECT, DIRECT_CA_BUNDLE, &copied).await?;
    let trusted = sample::trust_bundle(cluster).await?;
    replicas.leader.crash().await?;
    let killed = Instant::now();
    for _ in 0..3 {
        for (target, pointer, trusted) in [
            (sample::DEFINITION, CA_BUNDLE, &trusted),
            (DIRECT, DIRECT_CA_BUNDLE, &copied),
        ] {
            let overwritten = json!([{"op": "remove", "path": pointer}]);
            succeed(&cluster.client, "PATCH", target, Some(&overwritten)).await?;
            carries(cluster, target, pointer, trusted).await?;
        }
    }
    let (took, leads) = (killed.elapsed(), replicas.standby.leads().await?);
    anyhow::ensure!(!leads, "the other replica leads already, after {took:?}");
    tracing::info!(
        seconds = took.as_secs_f32(),
        "Repaired three times while nobody led"
    );
    replicas.standby.stop().await
}

/// Makes a target that asks for a Secret by its name, which holds a copy of the trust bundle: this one.
async fn copy_trust(cluster: &TestCluster) -> anyhow::Result<String> {
    let client = &cluster.client;
    let trust = sample::trust_bundle(cluster).await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "data": {"ca.crt": trust},
        "metadata": {"name": "copy", "annotations": {names::ALLOW_DIRECT_INJECTION: "true"}},
    });
    let secrets = format!("/api/v1/namespaces/{}/secrets", sample::NAMESPACE);
    succeed(client, "POST", &secrets, Some(&secret)).await?;
    let target = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {
            "name": "direct",
            "annotations": {names::INJECT_CA_FROM_SECRET: format!("{}/copy", sample::NAMESPACE)},
        },
        "webhooks": [{
            "name": "direct.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": sample::NAMESPACE, "name": "nobody"}},
            "rules": [{
                "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["nothings"],
            }],
        }],
    });
    succeed(client, "POST", VALIDATING, Some(&target)).await?;
    Ok(trust)
}

async fn carries(cluster: &TestCluster, target: &str, pointer: &str, trusted: &str) -> anyhow::Result<()> {
    until("the trust bundle is there", PATIENCE, async || {
        let target = get(&cluster.client, target).await?.unwrap_or_default();
        let bundle = text(&target, pointer);
        let is_there = STANDARD.decode(bundle)?.trim_ascii() == STANDARD.decode(trusted)?.trim_ascii();
        Ok(check(is_there, || format!("{bundle:?}")))
    })
    .await
}

/// What the fence cannot hold back must do no harm either.
pub(super) async fn two_leaders_rotate_without_a_failed_call(cluster: &TestCluster) -> anyhow::Result<()> {
    let mut operator = cluster.operator.clone();
    operator.arguments.push("--leader-elect=false".to_owned());
    let (one, other) = (
        operator.replica("one").start()?,
        operator.replica("other").start()?,
    );
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let mut generations = Generations::observe(cluster).await?;
    for _ in 0..3 {
        request_rotation(cluster).await?;
        generations = generations.after_one();
        settled_at(cluster, generations).await?;
    }
    load.at_least(50).await?;
    traffic::finish(load).await?;
    one.stop().await?;
    other.stop().await
}

pub(super) async fn leases_that_make_no_sense_are_refused(cluster: &TestCluster) -> anyhow::Result<()> {
    let (collection, name) = LEASE.rsplit_once('/').context("no collection")?;
    let lease = |spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    for (spec, code, message) in [
        (
            json!({"leaseDurationSeconds": 0}),
            422,
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            json!({"leaseTransitions": -1}),
            422,
            "must be greater than or equal to 0",
        ),
        (
            json!({"renewTime": "2026-11-21T10:00:00Z"}),
            400,
            "parsing time \"2026-11-21T10:00:00Z\"",
        ),
        (
            json!({"acquireTime": "2026-11-21T10:00:00.123Z"}),
            400,
            "parsing time \"2026-11-21T10:00:00.123Z\"",
        ),
    ] {
        let answer = request::send(&cluster.client, "POST", collection, Some(&lease(spec.clone()))).await?;
        anyhow::ensure!(
            answer.code == code && answer.message().contains(message),
            "{spec}: {answer}"
        );
    }
    let held = json!({"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-11-21T10:00:00.000001Z"});
    let first = succeed(&cluster.client, "POST", collection, Some(&lease(held)))
        .await?
        .body;
    let mut taken = first.clone();
    taken["spec"]["holderIdentity"] = json!("other");
    let second = succeed(&cluster.client, "PUT", LEASE, Some(&taken)).await?.body;
    anyhow::ensure!(
        second["spec"]["renewTime"] == first["spec"]["renewTime"],
        "the time came back as {}",
        second["spec"]["renewTime"]
    );
    let late = request::send(&cluster.client, "PUT", LEASE, Some(&first)).await?;
    anyhow::ensure!(late.code == 409, "a Lease that has changed was written: {late}");
    Ok(())
}

// === impl Replicas ===

impl Replicas {
    async fn start(cluster: &TestCluster) -> anyhow::Result<Self> {
        let (operator, leaders_proxy) = cluster.proxied(&cluster.operator.replica("one")).await?;
        let leader = operator.start()?;
        sample::install(cluster, "sample.v1").await?;
        let (operator, standbys_proxy) = cluster.proxied(&cluster.operator.replica("other")).await?;
        let standby = operator.start()?;
        // The one that stands by has seen everything, and done nothing.
        standby.ready().await?;
        for (replica, expected) in [(&leader, "windlass_leader 1"), (&standby, "windlass_leader 0")] {
            let metrics = replica.ask("/metrics").await?;
            anyhow::ensure!(metrics.contains(expected), "not {expected}: {metrics}");
        }
        sample::settled(cluster).await?;
        let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
        load.at_least(50).await?;
        anyhow::ensure!(
            standbys_proxy.writes() == 0,
            "written while standing by: {:?}",
            standbys_proxy.log()
        );
        Ok(Self {
            leader,
            leaders_proxy,
            standby,
            standbys_proxy,
            load,
            before: Generations::observe(cluster).await?,
        })
    }
}

// === impl Generations ===

impl Generations {
    async fn observe(cluster: &TestCluster) -> anyhow::Result<Self> {
        let crd = sample::crd(cluster).await?;
        let certificate = certificate(cluster).await?;
        Ok(Self {
            authority: certificate["status"]["ca"]["current"]["generation"]
                .as_i64()
                .context("no CA in the status")?,
            target: crd["metadata"]["generation"]
                .as_i64()
                .context("the CRD has no generation")?,
        })
    }

    /// What one rotation leaves.
    fn after_one(self) -> Self {
        Self {
            authority: self.authority + 1,
            target: self.target + 1,
        }
    }
}

/// Waits until `replica` leads; how long that took.
async fn leads(replica: &Running, patience: Duration) -> anyhow::Result<Duration> {
    let started = Instant::now();
    until("the other replica leads", patience, async || {
        Ok(check(replica.leads().await?, || "it stands by".to_owned()))
    })
    .await?;
    Ok(started.elapsed())
}

async fn certificate(cluster: &TestCluster) -> anyhow::Result<Value> {
    get(&cluster.client, sample::SERVING_CERTIFICATE)
        .await?
        .context("no ServingCertificate")
}

async fn request_rotation(cluster: &TestCluster) -> anyhow::Result<()> {
    sample::request_rotation(cluster, "ca").await
}

/// Waits until the one rotation that was asked for is over, and ends the load.
async fn finished(cluster: &TestCluster, before: Generations, load: Load) -> anyhow::Result<()> {
    settled_at(cluster, before.after_one()).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Waits until the rotation has come to `expected`, and sees to it that it has not gone further.
async fn settled_at(cluster: &TestCluster, expected: Generations) -> anyhow::Result<()> {
    until("the CA has rotated", PATIENCE, async || {
        let seen = Generations::observe(cluster).await?;
        Ok(check(seen.authority >= expected.authority, || {
            format!("{seen:?}")
        }))
    })
    .await?;
    sample::settled(cluster).await?;
    let seen = Generations::observe(cluster).await?;
    anyhow::ensure!(
        seen == expected,
        "one rotation was asked for: {seen:?} instead of {expected:?}"
    );
    Ok(())
}
