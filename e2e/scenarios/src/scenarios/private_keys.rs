//! Private keys appear only in Secrets.

use std::{collections::BTreeSet, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, runtime::watcher};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{operation::AdminOperation, traffic};
use crate::{
    dump,
    operator::Running,
    secret_scan::SecretScan,
    steps::{PATIENCE, check, get, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

/// The operations of a full run.
const OPERATIONS: [AdminOperation; 5] = [
    AdminOperation::Install,
    AdminOperation::LeafRotation,
    AdminOperation::CaRotation,
    AdminOperation::Upgrade,
    AdminOperation::Removal,
];

/// The minimum number of keys in a full run: those of the CAs before and after the rotation, the next CAs,
/// and the leaf certificates.
const FEWEST_KEYS: usize = 7;

/// The PEM blocks of all private keys in all Secrets so far.
type Keys = Arc<Mutex<BTreeSet<String>>>;

pub(super) async fn private_keys_appear_only_in_secrets(cluster: &TestCluster) -> anyhow::Result<()> {
    let keys = Keys::default();
    let stop = CancellationToken::new();
    let gathering = tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(collect_keys(cluster.client.clone(), keys.clone())),
    );
    let running = cluster.operator.with_log_filter("trace").start()?;
    let mut seen = Vec::new();
    create_rsa_certificate(cluster).await?;
    for operation in OPERATIONS {
        let before = operation.start(cluster).await?;
        until(&format!("{operation:?} is complete"), PATIENCE, async || {
            let done = operation.is_done(cluster, &before).await?;
            Ok(check(done, || "not done".to_owned()))
        })
        .await?;
        seen.extend(visible_state(cluster, &running, operation).await?);
    }
    running.kill().await?;
    stop.cancel();
    gathering.await?;
    let log = std::fs::read(&cluster.operator.log)?;
    anyhow::ensure!(
        String::from_utf8_lossy(&log).contains("\"level\":\"TRACE\""),
        "the log has no messages of level trace"
    );
    seen.push(("the log".to_owned(), log));

    let keys = keys.lock().clone();
    anyhow::ensure!(
        keys.len() >= FEWEST_KEYS,
        "only {} keys were collected",
        keys.len()
    );
    let scan = SecretScan::new(keys.iter().map(String::as_str))?;
    let bytes: usize = seen.iter().map(|(_, text)| text.len()).sum();
    let found: Vec<String> = seen
        .iter()
        .flat_map(|(place, text)| {
            let found = scan.find(text).into_iter();
            found.map(move |what| format!("{place} {what}"))
        })
        .collect();
    anyhow::ensure!(
        found.is_empty(),
        "private keys were found:\n  {}",
        found.join("\n  ")
    );
    tracing::info!(
        keys = keys.len(),
        places = seen.len(),
        bytes,
        "No part of a private key was found"
    );
    Ok(())
}

/// Creates a certificate with an RSA key; bundles have none.
async fn create_rsa_certificate(cluster: &TestCluster) -> anyhow::Result<()> {
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let services = format!("/api/v1/namespaces/{}/services", traffic::NAMESPACE);
    let service = json!({"metadata": {"name": "rsa"}, "spec": {"ports": [{"port": 443}]}});
    succeed(&cluster.client, "POST", &services, Some(&service)).await?;
    let certificates = serving_certificates(traffic::NAMESPACE);
    let certificate = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate", "metadata": {"name": "rsa"},
        "spec": {"serviceName": "rsa", "secretName": "rsa-cert", "privateKey": {"algorithm": "RSA"}},
    });
    succeed(&cluster.client, "POST", &certificates, Some(&certificate)).await?;
    // Without endpoints the certificate is never ready, but the key is generated.
    let secret = format!("/api/v1/namespaces/{}/secrets/rsa-cert", traffic::NAMESPACE);
    until("the RSA key exists", PATIENCE, async || {
        let secret = get(&cluster.client, &secret).await?;
        Ok(secret.map(drop).ok_or_else(|| "no Secret".to_owned()))
    })
    .await
}

/// Watches all Secrets and collects their keys.
async fn collect_keys(client: Client, keys: Keys) {
    let secrets: Api<Secret> = Api::all(client);
    let mut events = std::pin::pin!(watcher(secrets, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let Ok(watcher::Event::Apply(secret) | watcher::Event::InitApply(secret)) = event else {
            continue;
        };
        for value in secret.data.unwrap_or_default().into_values() {
            let text = String::from_utf8_lossy(&value.0);
            keys.lock()
                .extend(crate::secret_scan::private_keys(&text).map(str::to_owned));
        }
    }
}

/// Returns all objects with status, the events and the metrics, but no Secrets.
async fn visible_state(
    cluster: &TestCluster,
    running: &Running,
    operation: AdminOperation,
) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let metrics = running.ask("/metrics").await?;
    anyhow::ensure!(metrics.contains(" 200 "), "unexpected metrics: {metrics}");
    let objects = dump::objects(&cluster.client, |collection| collection.resource != "secrets").await?;
    let objects: Vec<_> = objects.into_iter().map(|(_, object)| object).collect();
    Ok(vec![
        (
            format!("the objects after {operation:?}"),
            serde_json::to_vec(&objects)?,
        ),
        (format!("the metrics after {operation:?}"), metrics.into_bytes()),
    ])
}
