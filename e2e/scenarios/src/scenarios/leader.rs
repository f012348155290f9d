//! Several replicas of the operator, one of which is the leader. Whatever happens to it, no request fails and
//! no step is repeated.

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

/// The time limit of a takeover after the leader was killed, with the default lease times.
const TAKEOVER: Duration = Duration::from_secs(20);

/// The time limit of a takeover after SIGTERM. The Lease is released; its expiry would take 15 s.
const HANDOVER: Duration = Duration::from_secs(5);

/// The number of the write at which the leader of a rotation is interrupted: the next CA already signs, but
/// not every following step is complete.
const MIDDLE: u64 = 2;

/// A target with a CA source that is a Secret.
const DIRECT: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/direct";

/// The pointer to its trust bundle.
const DIRECT_CA_BUNDLE: &str = "/webhooks/0/clientConfig/caBundle";

/// The pointer to the trust bundle of a CRD.
const CA_BUNDLE: &str = "/spec/conversion/webhook/clientConfig/caBundle";

/// Two replicas under load, each with its own proxy.
struct Replicas {
    leader: Running,
    leaders_proxy: Proxy,
    standby: Running,
    standbys_proxy: Proxy,
    load: Load,
    /// The state before the rotation.
    before: Generations,
}

/// Numbers that grow with each rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Generations {
    /// The generation of the signing CA.
    authority: i64,
    /// The generation of a CRD that is a target; it grows with each write of the spec.
    target: i64,
}

pub(super) async fn the_next_leader_completes_the_rotation_of_a_killed_one(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let replicas = Replicas::start(cluster).await?;
    replicas.leaders_proxy.cut_at(MIDDLE, Cut::After);
    request_rotation(cluster).await?;
    tokio::time::timeout(PATIENCE, replicas.leaders_proxy.closed())
        .await
        .context("the rotation has not started")?;
    replicas.leader.crash().await?;
    let takeover = wait_until_leader(&replicas.standby, TAKEOVER).await?;
    finish_rotation(cluster, replicas.before, replicas.load).await?;
    tracing::info!(
        seconds = takeover.as_secs_f32(),
        writes = replicas.standbys_proxy.writes(),
        "Another replica is the leader after SIGKILL and has completed the rotation"
    );
    replicas.standby.stop().await
}

pub(super) async fn a_paused_leader_writes_nothing_after_it_resumes(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let mut replicas = Replicas::start(cluster).await?;
    let proxy = &replicas.leaders_proxy;
    // The leader has read the Secrets for its next step, and is paused before it can write.
    proxy.hold_reads_after(1);
    request_rotation(cluster).await?;
    tokio::time::timeout(PATIENCE, proxy.held())
        .await
        .context("the rotation has not started")?;
    replicas.leader.pause().await?;
    let takeover = wait_until_leader(&replicas.standby, TAKEOVER).await?;
    finish_rotation(cluster, replicas.before, replicas.load).await?;
    let (writes, log) = (proxy.writes(), proxy.log().len());
    proxy.release();
    replicas.leader.resume().await?;
    let status = replicas.leader.ended().await?;
    anyhow::ensure!(!status.success(), "it ended with success, as after SIGTERM");
    anyhow::ensure!(
        proxy.writes() == writes,
        "writes of the previous leader: {:?}",
        &proxy.log()[log..]
    );
    wait_for_generations(cluster, replicas.before.after_one()).await?;
    tracing::info!(
        seconds = takeover.as_secs_f32(),
        writes_after_resume = proxy.writes() - writes,
        "Another replica is the leader after SIGSTOP; the previous one ended after SIGCONT"
    );
    replicas.standby.stop().await
}

pub(super) async fn a_terminated_leader_hands_over_immediately(cluster: &TestCluster) -> anyhow::Result<()> {
    let replicas = Replicas::start(cluster).await?;
    let begun = replicas.leaders_proxy.writes() + MIDDLE;
    request_rotation(cluster).await?;
    until("the rotation has started", PATIENCE, async || {
        let writes = replicas.leaders_proxy.writes();
        Ok(check(writes >= begun, || format!("{writes} writes")))
    })
    .await?;
    replicas.leader.stop().await?;
    let handover = wait_until_leader(&replicas.standby, HANDOVER).await?;
    finish_rotation(cluster, replicas.before, replicas.load).await?;
    tracing::info!(
        seconds = handover.as_secs_f32(),
        "Another replica is the leader after SIGTERM"
    );
    replicas.standby.stop().await
}

pub(super) async fn a_target_is_repaired_without_a_leader(cluster: &TestCluster) -> anyhow::Result<()> {
    let replicas = Replicas::start(cluster).await?;
    traffic::finish(replicas.load).await?;
    let copied = copy_trust(cluster).await?;
    wait_for_bundle(cluster, DIRECT, DIRECT_CA_BUNDLE, &copied).await?;
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
            wait_for_bundle(cluster, target, pointer, trusted).await?;
        }
    }
    let (took, leads) = (killed.elapsed(), replicas.standby.leads().await?);
    anyhow::ensure!(!leads, "the other replica is already the leader after {took:?}");
    tracing::info!(
        seconds = took.as_secs_f32(),
        "Repaired three times without a leader"
    );
    replicas.standby.stop().await
}

/// Creates a target whose CA source is a Secret with a copy of the trust bundle, and returns that.
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
            "clientConfig": {"service": {"namespace": sample::NAMESPACE, "name": "missing"}},
            "rules": [{
                "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["nothings"],
            }],
        }],
    });
    succeed(client, "POST", VALIDATING, Some(&target)).await?;
    Ok(trust)
}

async fn wait_for_bundle(
    cluster: &TestCluster,
    target: &str,
    pointer: &str,
    trusted: &str,
) -> anyhow::Result<()> {
    until("the trust bundle is injected", PATIENCE, async || {
        let target = get(&cluster.client, target).await?.unwrap_or_default();
        let bundle = text(&target, pointer);
        let is_there = STANDARD.decode(bundle)?.trim_ascii() == STANDARD.decode(trusted)?.trim_ascii();
        Ok(check(is_there, || format!("{bundle:?}")))
    })
    .await
}

/// Writes that the fence cannot prevent must be harmless too.
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
        wait_for_generations(cluster, generations).await?;
    }
    load.at_least(50).await?;
    traffic::finish(load).await?;
    one.stop().await?;
    other.stop().await
}

pub(super) async fn invalid_leases_are_rejected(cluster: &TestCluster) -> anyhow::Result<()> {
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
        "the returned time is {}",
        second["spec"]["renewTime"]
    );
    let late = request::send(&cluster.client, "PUT", LEASE, Some(&first)).await?;
    anyhow::ensure!(
        late.code == 409,
        "an update with an old resource version was accepted: {late}"
    );
    Ok(())
}

impl Replicas {
    async fn start(cluster: &TestCluster) -> anyhow::Result<Self> {
        let (operator, leaders_proxy) = cluster.proxied(&cluster.operator.replica("one")).await?;
        let leader = operator.start()?;
        sample::install(cluster, "sample.v1").await?;
        let (operator, standbys_proxy) = cluster.proxied(&cluster.operator.replica("other")).await?;
        let standby = operator.start()?;
        // The standby has synced its caches and written nothing.
        standby.ready().await?;
        for (replica, expected) in [(&leader, "windlass_leader 1"), (&standby, "windlass_leader 0")] {
            let metrics = replica.ask("/metrics").await?;
            anyhow::ensure!(metrics.contains(expected), "{expected} is not in {metrics}");
        }
        sample::settled(cluster).await?;
        let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
        load.at_least(50).await?;
        anyhow::ensure!(
            standbys_proxy.writes() == 0,
            "writes of the standby: {:?}",
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

impl Generations {
    async fn observe(cluster: &TestCluster) -> anyhow::Result<Self> {
        let crd = sample::crd(cluster).await?;
        let certificate = certificate(cluster).await?;
        Ok(Self {
            authority: certificate["status"]["ca"]["current"]["generation"]
                .as_i64()
                .context("the status has no CA")?,
            target: crd["metadata"]["generation"]
                .as_i64()
                .context("the CRD has no generation")?,
        })
    }

    /// Returns the state after one rotation.
    fn after_one(self) -> Self {
        Self {
            authority: self.authority + 1,
            target: self.target + 1,
        }
    }
}

/// Waits until `replica` is the leader, and returns how long that took.
async fn wait_until_leader(replica: &Running, patience: Duration) -> anyhow::Result<Duration> {
    let started = Instant::now();
    until("the other replica is the leader", patience, async || {
        Ok(check(replica.leads().await?, || {
            "it is not the leader".to_owned()
        }))
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

/// Waits until exactly one rotation is complete, and stops the load.
async fn finish_rotation(cluster: &TestCluster, before: Generations, load: Load) -> anyhow::Result<()> {
    wait_for_generations(cluster, before.after_one()).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Waits until the rotation has reached `expected`, and checks that it went no further.
async fn wait_for_generations(cluster: &TestCluster, expected: Generations) -> anyhow::Result<()> {
    until("the CA is rotated", PATIENCE, async || {
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
        "expected one rotation: {seen:?} instead of {expected:?}"
    );
    Ok(())
}
