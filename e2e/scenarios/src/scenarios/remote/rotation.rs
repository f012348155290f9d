//! Rotations, which wait for targets of a second cluster.

use std::time::Duration;

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};
use windlass_trust::pki::{Certificate, pem};

use super::{
    super::foreign,
    second_cluster::{ACCOUNT, ROLES, Second, role, says, secret, secrets, told_operator},
};
use crate::{
    request::text,
    sample,
    steps::{self, PATIENCE, check, conditions, get, succeed, until},
    test_cluster::TestCluster,
};

/// How long the second cluster is away.
const AWAY: Duration = Duration::from_secs(20);

/// How long it is looked whether a rotation really waits.
const HELD: Duration = Duration::from_secs(5);

pub(in crate::scenarios) async fn a_rotation_waits_for_targets_of_a_second_cluster(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = Second::start().await?;
    succeed(client, "POST", &secrets(), Some(&secret(&second.kubeconfig()))).await?;
    let _operator = told_operator(cluster).start()?;
    sample::install(cluster, "sample.v1").await?;
    second
        .create_targets(sample::NAMESPACE, sample::CERTIFICATE)
        .await?;
    second.carries(client, sample::SERVING_SECRET).await?;
    sample::settled(cluster).await?;
    let carried = second.carried().await?;
    let rotating = async {
        rotate_while_it_is_away(cluster, &second).await?;
        rotate_while_it_cannot_be_written(cluster, &second).await
    };
    tokio::select! {
        rotated = rotating => rotated,
        broken = stay_trusted(client, &second, carried) => broken,
    }
}

/// Looks, for as long as nothing is wrong, whether the targets trust what is served.
async fn stay_trusted(client: &Client, second: &Second, mut carried: Vec<String>) -> anyhow::Result<()> {
    loop {
        let secret = get(client, sample::SERVING_SECRET).await?.context("gone")?;
        let leaf = certificates(text(&secret, "/data/tls.crt"))?;
        let leaf = leaf.first().context("no leaf")?;
        // Nobody writes them while they cannot be read.
        carried = second.carried().await.unwrap_or(carried);
        for bundle in &carried {
            let is_trusted = certificates(bundle)?.iter().any(|root| leaf.is_signed_by(root));
            anyhow::ensure!(is_trusted, "served is {leaf}, and a target trusts {bundle}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn certificates(encoded: &str) -> anyhow::Result<Vec<Certificate>> {
    Ok(pem::read(&STANDARD.decode(encoded)?).certificates)
}

/// Asks for another CA, and looks for a while whether the serving certificate stays.
async fn ask_in_vain(cluster: &TestCluster) -> anyhow::Result<()> {
    let leaf = async || {
        let secret = get(&cluster.client, sample::SERVING_SECRET)
            .await?
            .context("gone")?;
        anyhow::Ok(text(&secret, "/data/tls.crt").to_owned())
    };
    let before = leaf().await?;
    sample::request_rotation(cluster, "ca").await?;
    tokio::time::sleep(HELD).await;
    anyhow::ensure!(leaf().await? == before, "the rotation did not wait");
    Ok(())
}

/// Waits until another CA than `before` signs, and everybody trusts it.
async fn rotated(cluster: &TestCluster, second: &Second, before: &Value) -> anyhow::Result<Value> {
    let client = &cluster.client;
    let generation = until("another CA signs", PATIENCE, async || {
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
    second.carries(client, sample::SERVING_SECRET).await?;
    Ok(generation)
}

async fn generation(client: &Client) -> anyhow::Result<Value> {
    let certificate = get(client, sample::SERVING_CERTIFICATE).await?.context("gone")?;
    Ok(certificate["status"]["ca"]["current"]["generation"].clone())
}

/// What targets are like in a cluster that does not answer is not known, and they are not counted as absent.
async fn rotate_while_it_is_away(cluster: &TestCluster, second: &Second) -> anyhow::Result<()> {
    let client = &cluster.client;
    let before = generation(client).await?;
    let away = async { anyhow::Ok(second.sandbox.restart(AWAY).await?) };
    let asked = async {
        let message = says(client, sample::SERVING_CERTIFICATE, "Ready", "TargetsUnlisted").await?;
        anyhow::ensure!(message.contains("the remote cluster"), "{message}");
        ask_in_vain(cluster).await?;
        // Whatever is away there, here everything is as ever.
        let drift = json!([{
            "op": "replace", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": foreign::trust_bundle()?,
        }]);
        succeed(client, "PATCH", sample::DEFINITION, Some(&drift)).await?;
        let trust = sample::trust_bundle(cluster).await?;
        until("the definition is repaired", Duration::from_secs(3), async || {
            let crd = sample::crd(cluster).await?;
            let carried = text(&crd, "/spec/conversion/webhook/clientConfig/caBundle");
            Ok(check(carried == trust, || carried.to_owned()))
        })
        .await
    };
    let ((), ()) = tokio::try_join!(away, asked)?;
    rotated(cluster, second, &before).await?;
    Ok(())
}

/// One CA ahead is what targets have: the next rotation is done from that, and then nothing more until they have the one after.
async fn rotate_while_it_cannot_be_written(cluster: &TestCluster, second: &Second) -> anyhow::Result<()> {
    let client = &cluster.client;
    let path = format!("{ROLES}/{ACCOUNT}");
    let before = generation(client).await?;
    let reading = role(&["get", "list", "watch"]);
    succeed(&second.client, "PUT", &path, Some(&reading)).await?;
    sample::request_rotation(cluster, "ca").await?;
    until("another CA signs", PATIENCE, async || {
        Ok(check(generation(client).await? != before, || {
            "the same signs".to_owned()
        }))
    })
    .await?;
    let between = generation(client).await?;
    let message = says(client, sample::SERVING_CERTIFICATE, "Ready", "Blocked").await?;
    anyhow::ensure!(message.contains("in the remote cluster"), "{message}");
    ask_in_vain(cluster).await?;
    let writing = role(&["get", "list", "watch", "patch"]);
    succeed(&second.client, "PUT", &path, Some(&writing)).await?;
    rotated(cluster, second, &between).await?;
    Ok(())
}
