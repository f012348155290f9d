//! Secrets that are deleted, damaged or expired.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_trust::pki::{Certificate, Credentials, pem};

use super::{expired, traffic};
use crate::{
    operator,
    request::text,
    sample::{self, CERTIFICATE},
    steps::{MUTATING, PATIENCE, VALIDATING, check, condition, get, list, succeed, until},
    test_cluster::TestCluster,
};

pub(super) async fn a_deleted_serving_secret_is_issued_again(cluster: &TestCluster) -> anyhow::Result<()> {
    delete_under_load(cluster, &serving_secret()).await
}

pub(super) async fn a_deleted_ca_secret_is_created_again(cluster: &TestCluster) -> anyhow::Result<()> {
    delete_under_load(cluster, &authority_secret()).await
}

async fn delete_under_load(cluster: &TestCluster, path: &str) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let before = get(&cluster.client, path).await?.context("no such Secret")?["metadata"]["uid"].clone();
    succeed(&cluster.client, "DELETE", path, None).await?;
    until(&format!("{path} is recreated"), PATIENCE, async || {
        Ok(match get(&cluster.client, path).await? {
            Some(secret) if secret["metadata"]["uid"] != before => Ok(()),
            _ => Err("gone".to_owned()),
        })
    })
    .await?;
    sample::settled(cluster).await?;
    load.at_least(100).await?;
    traffic::finish(load).await?;
    Ok(())
}

pub(super) async fn a_key_that_does_not_match_its_certificate_is_replaced(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let key = rcgen::KeyPair::generate()?.serialize_pem();
    damage_under_load(cluster, &serving_secret(), "tls.key", key.as_bytes()).await
}

pub(super) async fn an_invalid_trust_bundle_is_repaired_and_never_injected(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    damage_under_load(cluster, &serving_secret(), "ca.crt", b"garbage").await
}

pub(super) async fn a_damaged_ca_secret_is_replaced(cluster: &TestCluster) -> anyhow::Result<()> {
    damage_under_load(cluster, &authority_secret(), "state.json", b"{").await
}

/// All certificates expired while the operator was down: it creates a CA, and injects no expired certificate.
pub(super) async fn an_expired_ca_at_start_is_replaced(cluster: &TestCluster) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    operator.kill().await?;
    let expired = expired::secrets(CERTIFICATE, "sample-system")?;
    for (path, data) in [
        (authority_secret(), expired.authority),
        (serving_secret(), expired.serving),
    ] {
        let patch = json!([{"op": "replace", "path": "/data", "value": data}]);
        succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
    }
    let _operator = cluster.operator.start()?;
    let is_replaced = "a valid certificate is issued, and no expired one is injected";
    until(is_replaced, PATIENCE, async || {
        for bundle in injected_bundles(cluster).await? {
            let ended = bundle
                .iter()
                .find(|authority| authority.not_after() < Timestamp::now());
            anyhow::ensure!(ended.is_none(), "the expired {ended:?} was injected");
        }
        let secret = get(&cluster.client, &serving_secret())
            .await?
            .context("no serving Secret")?;
        let credentials = Credentials::from_pem(
            &secret_value(&secret, "tls.crt")?,
            &secret_value(&secret, "tls.key")?,
        )?;
        let end = credentials.leaf().not_after();
        Ok(check(end > Timestamp::now(), || format!("ended {end}")))
    })
    .await?;
    // Until then, the status is the previous one.
    let path = sample::SERVING_CERTIFICATE;
    until("another CA is current", PATIENCE, async || {
        let status = get(&cluster.client, path).await?.unwrap_or_default()["status"].take();
        Ok(
            if status["ca"]["current"]["generation"].as_i64() > Some(expired::GENERATION) {
                Ok(())
            } else {
                Err(status.to_string())
            },
        )
    })
    .await?;
    sample::settled(cluster).await?;
    condition(&cluster.client, path, "Ready", "True", PATIENCE).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Damages one value of a Secret. The Secret is repaired, no invalid trust bundle is injected, and no call
/// fails.
async fn damage_under_load(
    cluster: &TestCluster,
    path: &str,
    key: &str,
    garbage: &[u8],
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let garbage = STANDARD.encode(garbage);
    let patch = json!({"data": {key: garbage}});
    succeed(&cluster.client, "PATCH", path, Some(&patch)).await?;
    until(&format!("{key} of {path} is replaced"), PATIENCE, async || {
        for bundle in injected_bundles(cluster).await? {
            anyhow::ensure!(
                !bundle.is_empty(),
                "an empty or garbage trust bundle was injected"
            );
        }
        let secret = get(&cluster.client, path).await?.unwrap_or_default();
        let value = text(&secret["data"], &format!("/{key}"));
        Ok(check(!(value.is_empty() || value == garbage), || {
            value.to_owned()
        }))
    })
    .await?;
    sample::settled(cluster).await?;
    let secret = get(&cluster.client, &serving_secret())
        .await?
        .context("no serving Secret")?;
    let credentials = Credentials::from_pem(
        &secret_value(&secret, "tls.crt")?,
        &secret_value(&secret, "tls.key")?,
    )?;
    let trust = pem::parse(&secret_value(&secret, "ca.crt")?)?;
    anyhow::ensure!(
        trust
            .iter()
            .any(|authority| credentials.leaf().is_signed_by(authority)),
        "the serving certificate is not signed by the trust bundle in the same Secret"
    );
    load.at_least(100).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Reads the trust bundles of the sample's targets.
async fn injected_bundles(cluster: &TestCluster) -> anyhow::Result<Vec<Vec<Certificate>>> {
    let crd = sample::crd(cluster).await?;
    let mut bundles = vec![text(&crd, "/spec/conversion/webhook/clientConfig/caBundle").to_owned()];
    for collection in [VALIDATING, MUTATING] {
        for configuration in list(&cluster.client, collection).await? {
            bundles.push(text(&configuration, "/webhooks/0/clientConfig/caBundle").to_owned());
        }
    }
    let parse = |bundle: String| Ok(pem::parse(&STANDARD.decode(bundle)?)?);
    bundles.into_iter().map(parse).collect()
}

fn secret_value(secret: &Value, key: &str) -> anyhow::Result<Vec<u8>> {
    Ok(STANDARD.decode(text(&secret["data"], &format!("/{key}")))?)
}

fn serving_secret() -> String {
    format!("/api/v1/namespaces/sample-system/secrets/{CERTIFICATE}-cert")
}

/// Returns the path of the CA Secret, which is named after the ServingCertificate and its namespace.
fn authority_secret() -> String {
    let namespace = operator::NAMESPACE;
    format!("/api/v1/namespaces/{namespace}/secrets/sample-system.{CERTIFICATE}")
}
