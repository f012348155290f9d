//! Several replicas of the operator: one leads, and whatever becomes of it, no request fails and nothing is done twice.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use super::traffic;
use crate::{
    load::Load,
    operator::Running,
    proxy::{Cut, Proxy},
    request, sample,
    steps::{LEASE, PATIENCE, get, succeed, until},
    test_cluster::TestCluster,
};

/// How long a takeover may take after the leader was killed, with the lease times that are the default.
const TAKEOVER: Duration = Duration::from_secs(20);

/// How long it may take after the leader was asked to end: no Lease is waited for, which would take 15 s.
const HANDOVER: Duration = Duration::from_secs(5);

/// The write of a rotation at which its leader is interrupted: the next CA signs already, and not all that follows from
/// that is done.
const MIDDLE: u64 = 2;

/// Two replicas under load, each behind a gate of its own.
struct Replicas {
    leader: Running,
    leaders_gate: Proxy,
    standby: Running,
    standbys_gate: Proxy,
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
    bed: &TestCluster,
) -> anyhow::Result<()> {
    let replicas = Replicas::start(bed).await?;
    replicas.leaders_gate.cut_at(MIDDLE, Cut::After);
    ask_for_rotation(bed).await?;
    tokio::time::timeout(PATIENCE, replicas.leaders_gate.closed())
        .await
        .context("the rotation did not begin")?;
    replicas.leader.crash().await?;
    let takeover = leads(&replicas.standby, TAKEOVER).await?;
    finished(bed, replicas.before, replicas.load).await?;
    tracing::info!(
        seconds = takeover.as_secs_f32(),
        writes = replicas.standbys_gate.writes(),
        "Another replica leads after kill -9, and has finished the rotation"
    );
    replicas.standby.stop().await
}

pub(super) async fn a_paused_leader_writes_nothing_when_it_goes_on(bed: &TestCluster) -> anyhow::Result<()> {
    let mut replicas = Replicas::start(bed).await?;
    let gate = &replicas.leaders_gate;
    // It has read the Secrets for its next step, and stands still before it can do that.
    gate.hold_reads_after(1);
    ask_for_rotation(bed).await?;
    tokio::time::timeout(PATIENCE, gate.held())
        .await
        .context("the rotation did not begin")?;
    replicas.leader.pause().await?;
    let takeover = leads(&replicas.standby, TAKEOVER).await?;
    finished(bed, replicas.before, replicas.load).await?;
    let (writes, log) = (gate.writes(), gate.log().len());
    gate.release();
    replicas.leader.resume().await?;
    let status = replicas.leader.ended().await?;
    anyhow::ensure!(!status.success(), "it ended as if it had been asked to");
    anyhow::ensure!(
        gate.writes() == writes,
        "written by the leader of before: {:?}",
        &gate.log()[log..]
    );
    settled_at(bed, replicas.before.after_one()).await?;
    tracing::info!(
        seconds = takeover.as_secs_f32(),
        writes_after_resume = gate.writes() - writes,
        "Another replica leads after SIGSTOP; the one before ended after SIGCONT"
    );
    replicas.standby.stop().await
}

pub(super) async fn a_leader_that_is_asked_to_end_hands_over_at_once(
    bed: &TestCluster,
) -> anyhow::Result<()> {
    let replicas = Replicas::start(bed).await?;
    let begun = replicas.leaders_gate.writes() + MIDDLE;
    ask_for_rotation(bed).await?;
    until("the rotation has begun", PATIENCE, async || {
        let writes = replicas.leaders_gate.writes();
        Ok(if writes >= begun {
            Ok(())
        } else {
            Err(format!("{writes} writes"))
        })
    })
    .await?;
    replicas.leader.stop().await?;
    let handover = leads(&replicas.standby, HANDOVER).await?;
    finished(bed, replicas.before, replicas.load).await?;
    tracing::info!(
        seconds = handover.as_secs_f32(),
        "Another replica leads after SIGTERM"
    );
    replicas.standby.stop().await
}

/// What the fence cannot hold back must do no harm either.
pub(super) async fn two_leaders_rotate_without_a_failed_call(bed: &TestCluster) -> anyhow::Result<()> {
    let mut operator = bed.operator.clone();
    operator.arguments.push("--leader-elect=false".to_owned());
    let (one, other) = (
        operator.replica("one").start()?,
        operator.replica("other").start()?,
    );
    sample::install(bed, "sample.v1").await?;
    sample::settled(bed).await?;
    let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let mut generations = Generations::observe(bed).await?;
    for _ in 0..3 {
        ask_for_rotation(bed).await?;
        generations = generations.after_one();
        settled_at(bed, generations).await?;
    }
    load.at_least(50).await?;
    traffic::finish(load).await?;
    one.stop().await?;
    other.stop().await
}

pub(super) async fn leases_that_make_no_sense_are_refused(bed: &TestCluster) -> anyhow::Result<()> {
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
        let answer = request::send(&bed.client, "POST", collection, Some(&lease(spec.clone()))).await?;
        anyhow::ensure!(
            answer.code == code && answer.message().contains(message),
            "{spec}: {answer}"
        );
    }
    let held = json!({"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-11-21T10:00:00.000001Z"});
    let first = succeed(&bed.client, "POST", collection, Some(&lease(held)))
        .await?
        .body;
    let mut taken = first.clone();
    taken["spec"]["holderIdentity"] = json!("other");
    let second = succeed(&bed.client, "PUT", LEASE, Some(&taken)).await?.body;
    anyhow::ensure!(
        second["spec"]["renewTime"] == first["spec"]["renewTime"],
        "the time came back as {}",
        second["spec"]["renewTime"]
    );
    let late = request::send(&bed.client, "PUT", LEASE, Some(&first)).await?;
    anyhow::ensure!(late.code == 409, "a Lease that has changed was written: {late}");
    Ok(())
}

// === impl Replicas ===

impl Replicas {
    async fn start(bed: &TestCluster) -> anyhow::Result<Self> {
        let (operator, leaders_gate) = bed.gated(&bed.operator.replica("one")).await?;
        let leader = operator.start()?;
        sample::install(bed, "sample.v1").await?;
        let (operator, standbys_gate) = bed.gated(&bed.operator.replica("other")).await?;
        let standby = operator.start()?;
        // The one that stands by has seen everything, and done nothing.
        until("the standby is ready", PATIENCE, async || {
            let answer = standby.ask("/readyz").await?;
            Ok(if answer.contains(" 200 ") {
                Ok(())
            } else {
                Err(answer)
            })
        })
        .await?;
        for (replica, expected) in [(&leader, "windlass_leader 1"), (&standby, "windlass_leader 0")] {
            let metrics = replica.ask("/metrics").await?;
            anyhow::ensure!(metrics.contains(expected), "not {expected}: {metrics}");
        }
        sample::settled(bed).await?;
        let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
        load.at_least(50).await?;
        anyhow::ensure!(
            standbys_gate.writes() == 0,
            "written while standing by: {:?}",
            standbys_gate.log()
        );
        Ok(Self {
            leader,
            leaders_gate,
            standby,
            standbys_gate,
            load,
            before: Generations::observe(bed).await?,
        })
    }
}

// === impl Generations ===

impl Generations {
    async fn observe(bed: &TestCluster) -> anyhow::Result<Self> {
        let crd = sample::crd(bed).await?;
        let certificate = certificate(bed).await?;
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
        Ok(if replica.leads().await? {
            Ok(())
        } else {
            Err("it stands by".to_owned())
        })
    })
    .await?;
    Ok(started.elapsed())
}

async fn certificate(bed: &TestCluster) -> anyhow::Result<Value> {
    get(&bed.client, sample::SERVING_CERTIFICATE)
        .await?
        .context("no ServingCertificate")
}

async fn ask_for_rotation(bed: &TestCluster) -> anyhow::Result<()> {
    sample::ask_for_rotation(bed, "ca").await
}

/// Waits until the one rotation that was asked for is over, and ends the load.
async fn finished(bed: &TestCluster, before: Generations, load: Load) -> anyhow::Result<()> {
    settled_at(bed, before.after_one()).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Waits until the rotation has come to `expected`, and sees to it that it has not gone further.
async fn settled_at(bed: &TestCluster, expected: Generations) -> anyhow::Result<()> {
    until("the CA has rotated", PATIENCE, async || {
        let seen = Generations::observe(bed).await?;
        Ok(if seen.authority >= expected.authority {
            Ok(())
        } else {
            Err(format!("{seen:?}"))
        })
    })
    .await?;
    sample::settled(bed).await?;
    let seen = Generations::observe(bed).await?;
    anyhow::ensure!(
        seen == expected,
        "one rotation was asked for: {seen:?} instead of {expected:?}"
    );
    Ok(())
}
