//! Rotations wait for targets of a second cluster.

use std::time::Duration;

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};
use windlass_trust::pki::{Certificate, pem};

use super::{
    super::foreign,
    second_cluster::{
        ACCOUNT, ROLES, SecondCluster, remote_operator, role, secret, secrets, wait_for_condition,
    },
};
use crate::{
    request::text,
    sample,
    steps::{self, PATIENCE, check, conditions, get, succeed, until},
    test_cluster::TestCluster,
};

/// How long the second cluster is unavailable.
const OUTAGE: Duration = Duration::from_secs(20);

/// How long a waiting rotation is observed.
const OBSERVATION: Duration = Duration::from_secs(5);

pub(in crate::scenarios) async fn a_rotation_waits_for_targets_of_a_second_cluster(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = SecondCluster::start().await?;
    succeed(client, "POST", &secrets(), Some(&secret(&second.kubeconfig()))).await?;
    let _operator = remote_operator(cluster).start()?;
    sample::install(cluster, "sample.v1").await?;
    second
        .create_targets(sample::NAMESPACE, sample::CERTIFICATE)
        .await?;
    second.wait_for_ca_bundles(client, sample::SERVING_SECRET).await?;
    sample::settled(cluster).await?;
    let carried = second.ca_bundles().await?;
    let rotating = async {
        rotate_during_outage(cluster, &second).await?;
        rotate_without_write_access(cluster, &second).await
    };
    tokio::select! {
        rotated = rotating => rotated,
        broken = check_trust(client, &second, carried) => broken,
    }
}

/// Checks continuously that the targets trust the serving certificate; ends only with an error.
async fn check_trust(
    client: &Client,
    second: &SecondCluster,
    mut carried: Vec<String>,
) -> anyhow::Result<()> {
    loop {
        let secret = get(client, sample::SERVING_SECRET).await?.context("gone")?;
        let leaf = certificates(text(&secret, "/data/tls.crt"))?;
        let leaf = leaf.first().context("no leaf")?;
        // The bundles do not change while they cannot be read.
        carried = second.ca_bundles().await.unwrap_or(carried);
        for bundle in &carried {
            let is_trusted = certificates(bundle)?.iter().any(|root| leaf.is_signed_by(root));
            anyhow::ensure!(is_trusted, "the server has {leaf}, but a target trusts {bundle}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn certificates(encoded: &str) -> anyhow::Result<Vec<Certificate>> {
    Ok(pem::read(&STANDARD.decode(encoded)?).certificates)
}

/// Requests another CA, and checks for a while that the serving certificate does not change.
async fn check_rotation_waits(cluster: &TestCluster) -> anyhow::Result<()> {
    let leaf = async || {
        let secret = get(&cluster.client, sample::SERVING_SECRET)
            .await?
            .context("gone")?;
        anyhow::Ok(text(&secret, "/data/tls.crt").to_owned())
    };
    let before = leaf().await?;
    sample::request_rotation(cluster, "ca").await?;
    tokio::time::sleep(OBSERVATION).await;
    anyhow::ensure!(leaf().await? == before, "the rotation did not wait");
    Ok(())
}

/// Waits until another CA than `before` is current and every target trusts it; returns its generation.
async fn wait_for_rotation(
    cluster: &TestCluster,
    second: &SecondCluster,
    before: &Value,
) -> anyhow::Result<Value> {
    let client = &cluster.client;
    let generation = until("another CA is current", PATIENCE, async || {
        let certificate = get(client, sample::SERVING_CERTIFICATE).await?.context("gone")?;
        let generation = &certificate["status"]["ca"]["current"]["generation"];
        Ok(
            check(generation != before && steps::is_settled(&certificate), || {
                format!("{}: {}", conditions(&certificate), certificate["status"])
            })
            .map(|()| generation.clone()),
        )
    })
    .await?;
    second.wait_for_ca_bundles(client, sample::SERVING_SECRET).await?;
    Ok(generation)
}

async fn generation(client: &Client) -> anyhow::Result<Value> {
    let certificate = get(client, sample::SERVING_CERTIFICATE).await?.context("gone")?;
    Ok(certificate["status"]["ca"]["current"]["generation"].clone())
}

/// Targets of an unavailable cluster are unknown; they do not count as deleted.
async fn rotate_during_outage(cluster: &TestCluster, second: &SecondCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let before = generation(client).await?;
    let away = async { anyhow::Ok(second.sandbox.restart(OUTAGE).await?) };
    let requesting = async {
        let message =
            wait_for_condition(client, sample::SERVING_CERTIFICATE, "Ready", "TargetsUnlisted").await?;
        anyhow::ensure!(message.contains("the remote cluster"), "{message}");
        check_rotation_waits(cluster).await?;
        // Local targets are still repaired.
        let drift = json!([{
            "op": "replace", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": foreign::trust_bundle()?,
        }]);
        succeed(client, "PATCH", sample::DEFINITION, Some(&drift)).await?;
        let trust = sample::trust_bundle(cluster).await?;
        until("the CRD is repaired", Duration::from_secs(3), async || {
            let crd = sample::crd(cluster).await?;
            let carried = text(&crd, "/spec/conversion/webhook/clientConfig/caBundle");
            Ok(check(carried == trust, || carried.to_owned()))
        })
        .await
    };
    let ((), ()) = tokio::try_join!(away, requesting)?;
    wait_for_rotation(cluster, second, &before).await?;
    Ok(())
}

/// The targets have one CA of the next rotation already, so that rotation finishes; the one after it waits
/// for them.
async fn rotate_without_write_access(cluster: &TestCluster, second: &SecondCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let path = format!("{ROLES}/{ACCOUNT}");
    let before = generation(client).await?;
    let reading = role(&["get", "list", "watch"]);
    succeed(&second.client, "PUT", &path, Some(&reading)).await?;
    sample::request_rotation(cluster, "ca").await?;
    until("another CA is current", PATIENCE, async || {
        Ok(check(generation(client).await? != before, || {
            "the CA is unchanged".to_owned()
        }))
    })
    .await?;
    let between = generation(client).await?;
    let message = wait_for_condition(client, sample::SERVING_CERTIFICATE, "Ready", "Blocked").await?;
    anyhow::ensure!(message.contains("in the remote cluster"), "{message}");
    check_rotation_waits(cluster).await?;
    let writing = role(&["get", "list", "watch", "patch"]);
    succeed(&second.client, "PUT", &path, Some(&writing)).await?;
    wait_for_rotation(cluster, second, &between).await?;
    Ok(())
}
