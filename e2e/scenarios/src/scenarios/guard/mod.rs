//! The guard: writes to a converted CRD that it denies, and the effect of such writes without a guard.

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

pub(super) use self::kubectl::kubectl_prints_the_denials_of_the_guard;

async fn install_sample(cluster: &TestCluster) -> anyhow::Result<()> {
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    Ok(())
}

pub(super) async fn every_replica_denies_every_forbidden_write(cluster: &TestCluster) -> anyhow::Result<()> {
    replicas::install_guard(cluster).await?;
    let leader = Replica::start(cluster, "one").await?;
    install_sample(cluster).await?;
    let standby = Replica::start(cluster, "other").await?;
    // The API server reuses connections: it must never have had one to the leader.
    standby.join(cluster).await?;
    writes::check_denied(cluster).await?;
    writes::check_allowed(cluster).await?;
    anyhow::ensure!(!standby.running.leads().await?, "the standby is the leader");
    standby.remove_endpoint(cluster).await?;
    standby.running.stop().await?;
    leader.join(cluster).await?;
    writes::check_denied(cluster).await?;
    writes::check_allowed(cluster).await?;

    // Without the BundleDeployment, the CRD can be deleted.
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
            passed = writes::send_until_allowed(cluster) => passed?,
        }
    }

    // The match conditions exclude Windlass's own writes. Without them, as with another account name, the guard
    // recognizes these writes.
    let unconditional = json!([{"op": "remove", "path": "/webhooks/0/matchConditions"}]);
    succeed(&cluster.client, "PATCH", CONFIGURATION, Some(&unconditional)).await?;
    sample::rotate(cluster, "ca").await?;
    writes::check_denied(cluster).await
}

pub(super) async fn drift_without_the_guard_is_repaired_and_its_manager_reported(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    replicas::install_guard(cluster).await?;
    let replica = Replica::start(cluster, "one").await?;
    install_sample(cluster).await?;
    replica.join(cluster).await?;
    writes::check_denied(cluster).await?;
    let path = sample::DEFINITION;
    let before = get(&cluster.client, path).await?.context("no CRD")?;
    let again = replica.kill().await?;
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let stranger = format!("{path}?fieldManager=stranger");
    until("a write passes without a guard", PATIENCE, async || {
        // The API server may briefly reuse a connection to a terminated replica.
        let answer = request::send(&cluster.client, "PATCH", &stranger, Some(&none)).await?;
        Ok(check(answer.code == 200, || answer.to_string()))
    })
    .await?;
    let _again = again.start()?;
    until("the conversion is restored", PATIENCE, async || {
        let conversion = get(&cluster.client, path).await?.context("no CRD")?["spec"]["conversion"].clone();
        Ok(check(conversion == before["spec"]["conversion"], || {
            conversion.to_string()
        }))
    })
    .await?;
    wait_for_author_event(cluster, "stranger").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    writes::check_denied(cluster).await
}

/// Waits until an event of the BundleDeployment names the manager that overwrote the conversion.
async fn wait_for_author_event(cluster: &TestCluster, manager: &str) -> anyhow::Result<()> {
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    until(
        "an event names the manager that overwrote the conversion",
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
