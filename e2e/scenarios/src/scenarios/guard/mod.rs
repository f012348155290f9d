//! The guard: what others may not do to a CRD that Windlass converts, and what happens while nobody guards it.

mod kubectl;
pub(super) mod replicas;
pub(super) mod writes;

use anyhow::Context;
use serde_json::json;

use self::{
    replicas::{CONFIGURATION, Replica},
    writes::OWNER,
};
use super::traffic;
use crate::{
    operator,
    request::{self, text},
    sample,
    steps::{self, PATIENCE, check, delete, get, succeed, until},
    test_cluster::TestCluster,
};

pub(super) use self::kubectl::kubectl_shows_what_the_guard_says;

/// Installs the sample.
async fn install_sample(cluster: &TestCluster) -> anyhow::Result<()> {
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    Ok(())
}

pub(super) async fn every_forbidden_write_is_refused_by_every_replica(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    replicas::install_guard(cluster).await?;
    let leader = Replica::start(cluster, "one").await?;
    install_sample(cluster).await?;
    let standby = Replica::start(cluster, "other").await?;
    // The API server keeps connections: it must never have had one to the leader.
    standby.join(cluster).await?;
    writes::refused(cluster).await?;
    writes::let_through(cluster).await?;
    anyhow::ensure!(!standby.running.leads().await?, "the standby leads");
    standby.leave(cluster).await?;
    standby.running.stop().await?;
    leader.join(cluster).await?;
    writes::refused(cluster).await?;
    writes::let_through(cluster).await?;

    // Who is done with the operator may be done with everything.
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    delete(&cluster.client, sample::DEFINITION).await
}

pub(super) async fn the_guards_own_certificate_rotates_without_a_gap(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    replicas::install_guard(cluster).await?;
    let leader = Replica::start(cluster, "one").await?;
    let standby = Replica::start(cluster, "other").await?;
    install_sample(cluster).await?;
    leader.join(cluster).await?;
    standby.join(cluster).await?;
    until("both replicas serve the certificate", PATIENCE, async || {
        let certificate = cluster.settled(operator::NAMESPACE, replicas::SERVICE).await?;
        let endpoints = certificate["status"]["endpoints"].clone();
        Ok(check(endpoints == json!({"ready": 2, "current": 2}), || {
            endpoints.to_string()
        }))
    })
    .await?;
    for what in ["leaf", "ca"] {
        let rotated = steps::rotate(
            &cluster.client,
            operator::NAMESPACE,
            replicas::SERVICE,
            what,
            PATIENCE,
        );
        tokio::select! {
            rotated = rotated => rotated?,
            passed = writes::until_one_passes(cluster) => passed?,
        }
    }

    // What Windlass writes itself is not even asked about. Where it is, because the operator has another name than the
    // configuration says, it is known all the same.
    let unconditional = json!([{"op": "remove", "path": "/webhooks/0/matchConditions"}]);
    succeed(&cluster.client, "PATCH", CONFIGURATION, Some(&unconditional)).await?;
    sample::rotate(cluster, "ca").await?;
    writes::refused(cluster).await
}

pub(super) async fn where_nobody_guards_drift_is_undone_and_its_author_named(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    replicas::install_guard(cluster).await?;
    let replica = Replica::start(cluster, "one").await?;
    install_sample(cluster).await?;
    replica.join(cluster).await?;
    writes::refused(cluster).await?;
    let path = sample::DEFINITION;
    let before = get(&cluster.client, path).await?.context("no CRD")?;
    let again = replica.kill().await?;
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let stranger = format!("{path}?fieldManager=stranger");
    until("a write passes that nobody guards", PATIENCE, async || {
        // The API server may keep a connection for a moment that nobody answers on.
        let answer = request::send(&cluster.client, "PATCH", &stranger, Some(&none)).await?;
        Ok(check(answer.code == 200, || answer.to_string()))
    })
    .await?;
    let _again = again.start()?;
    until("the conversion is put back", PATIENCE, async || {
        let conversion = get(&cluster.client, path).await?.context("no CRD")?["spec"]["conversion"].clone();
        Ok(check(conversion == before["spec"]["conversion"], || {
            conversion.to_string()
        }))
    })
    .await?;
    named(cluster, "stranger").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    writes::refused(cluster).await
}

/// Waits until an event about the BundleDeployment says who has overwritten the conversion.
async fn named(cluster: &TestCluster, manager: &str) -> anyhow::Result<()> {
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    until(
        "an event says who overwrote the conversion",
        PATIENCE,
        async || {
            let events = steps::list(&cluster.client, events).await?;
            let is_named = events.iter().any(|event| {
                text(event, "/reason") == "ConversionOverwritten"
                    && text(event, "/regarding/name") == OWNER
                    && text(event, "/related/name") == sample::WIDGETS
                    && text(event, "/note").contains(&format!("field manager {manager};"))
            });
            Ok(check(is_named, || json!(events).to_string()))
        },
    )
    .await
}
