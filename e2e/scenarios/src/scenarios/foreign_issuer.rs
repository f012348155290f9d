//! Trust in servers whose certificates another issuer signs, which replaces its CA in one step.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use parking_lot::Mutex;
use rcgen::KeyPair;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_object::names;
use windlass_trust::pki::{CertificateAuthority, DnsNames, Terms, Validity};

use super::foreign::certificates;
use crate::{
    request, sample,
    steps::{PATIENCE, VALIDATING, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// The namespace of the servers and the webhook configuration.
const NAMESPACE: &str = "foreign";

/// The name of the webhook with the annotation.
const TARGET: &str = "foreign";

/// How long an issuer waits before it signs with its new CA.
const SIGNING_DELAY: Duration = Duration::from_secs(1);

/// The pause of the load between two requests.
const PAUSE: Duration = Duration::from_millis(20);

/// The time limit for the removal of a trust bundle after its annotation.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

/// A CA that Windlass does not manage.
pub(super) struct ForeignIssuer(CertificateAuthority);

/// Requests that all call the webhook.
struct Calls {
    sent: Arc<AtomicU64>,
    failures: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

pub(super) async fn a_foreign_ca_is_replaced_in_one_step_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    let (first, second) = (ForeignIssuer::new(1)?, ForeignIssuer::new(2)?);
    serve(client, &first).await?;
    create_target(client, "ca").await?;
    wait_for_issuers(client, &[&first]).await?;
    let calls = Calls::start(client);
    calls.at_least(100).await?;

    replace(client, "secrets", &first.ca_secret(Some(&second))).await?;
    tokio::time::sleep(SIGNING_DELAY).await;
    replace(client, "secrets", &second.serving_secret()?).await?;
    wait_for_issuers(client, &[&first, &second]).await?;
    wait_for_issuers(client, &[&second])
        .await
        .context("all servers have a certificate of the new CA")?;
    calls.at_least(100).await?;
    calls.end().await?;

    // The last valid CA stays when the source becomes invalid or is deleted.
    let mut garbage = second.ca_secret(None);
    garbage["data"]["ca.crt"] = STANDARD.encode("garbage").into();
    replace(client, "secrets", &garbage).await?;
    remove_bundle(client).await?;
    wait_for_issuers(client, &[&second])
        .await
        .context("the source is invalid")?;
    succeed(client, "DELETE", &object_path("secrets", "ca"), None).await?;
    remove_bundle(client).await?;
    wait_for_issuers(client, &[&second])
        .await
        .context("the source was deleted")?;

    // The target no longer requests a CA.
    let nothing = json!({"metadata": {"annotations": {names::INJECT_CA_FROM_SECRET: null}}});
    succeed(client, "PATCH", &path(), Some(&nothing)).await?;
    until("the trust bundle is removed", REMOVAL_LIMIT, async || {
        let target = get(client, &path()).await?.context("it does not exist")?;
        let bundle = target.pointer("/webhooks/0/clientConfig/caBundle");
        Ok(check(bundle.is_none(), || target.to_string()))
    })
    .await?;
    let records = "/api/v1/namespaces/windlass-system/secrets?labelSelector=windlass.dev%2Fca-source";
    until("all records of CA sources are deleted", PATIENCE, async || {
        let records = get(client, records).await?.context("no list")?;
        Ok(check(records["items"] == json!([]), || records.to_string()))
    })
    .await?;
    Ok(())
}

pub(super) async fn each_webhook_of_a_configuration_trusts_its_own_ca_source(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    let (first, second) = (ForeignIssuer::new(1)?, ForeignIssuer::new(2)?);
    create_namespace(client).await?;
    let mut other = second.ca_secret(None);
    other["metadata"]["name"] = "other".into();
    for secret in [first.ca_secret(None), other] {
        succeed(client, "POST", &collection("secrets"), Some(&secret)).await?;
    }
    let mut target = target(&format!("{NAMESPACE}/ca,{NAMESPACE}/other"));
    let mut one = target["webhooks"][0].clone();
    one["name"] = "one.example.com".into();
    target["webhooks"]
        .as_array_mut()
        .context("no webhooks")?
        .push(one);
    let of_one = format!("{}.one.example.com", names::INJECT_CA_FROM_SECRET);
    target["metadata"]["annotations"][of_one] = format!("{NAMESPACE}/other").into();
    succeed(client, "POST", VALIDATING, Some(&target)).await?;
    until("each webhook has its own CA", PATIENCE, async || {
        let target = get(client, &path()).await?.context("it does not exist")?;
        let is_done =
            bundle_of(&target, 0) == pem(&[&first, &second]) && bundle_of(&target, 1) == pem(&[&second]);
        Ok(check(is_done, || target.to_string()))
    })
    .await
}

pub(super) async fn a_target_can_request_the_ca_of_the_api_server(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    create_namespace(client).await?;
    let published = "/api/v1/namespaces/windlass-system/configmaps/kube-root-ca.crt";
    if get(client, published).await?.is_none() {
        let issuer = ForeignIssuer::new(1)?;
        let config_map =
            json!({"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": pem(&[&issuer])}});
        let config_maps = "/api/v1/namespaces/windlass-system/configmaps";
        succeed(client, "POST", config_maps, Some(&config_map)).await?;
    }
    let config_map = get(client, published).await?.context("it does not exist")?;
    let published = config_map["data"]["ca.crt"].as_str().context("no CA")?;
    let mut target = target("");
    target["metadata"]["annotations"] = json!({names::INJECT_API_SERVER_CA: "true"});
    succeed(client, "POST", VALIDATING, Some(&target)).await?;
    until("the target has the CA of the API server", PATIENCE, async || {
        let target = get(client, &path()).await?.context("it does not exist")?;
        let is_there = certificates(bundle_of(&target, 0).as_bytes()) == certificates(published.as_bytes());
        Ok(check(is_there, || target.to_string()))
    })
    .await
}

/// Creates a Deployment that serves a certificate of `issuer`, and waits until it is available.
async fn serve(client: &Client, issuer: &ForeignIssuer) -> anyhow::Result<()> {
    create_namespace(client).await?;
    for secret in [issuer.ca_secret(None), issuer.serving_secret()?] {
        succeed(client, "POST", &collection("secrets"), Some(&secret)).await?;
    }
    let service = json!({"metadata": {"name": "hook"}, "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 9443}]}});
    succeed(client, "POST", &collection("services"), Some(&service)).await?;
    let deployment = sample::server("hook", "hook-cert", 2);
    let deployments = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    succeed(client, "POST", &deployments, Some(&deployment)).await?;
    until("both servers are available", PATIENCE, async || {
        let deployment = get(client, &format!("{deployments}/hook"))
            .await?
            .context("it does not exist")?;
        Ok(check(deployment["status"]["availableReplicas"] == 2, || {
            deployment["status"].to_string()
        }))
    })
    .await
}

async fn create_namespace(client: &Client) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": NAMESPACE, "labels": {"calls": NAMESPACE}}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    Ok(())
}

async fn create_target(client: &Client, secret: &str) -> anyhow::Result<()> {
    let target = target(&format!("{NAMESPACE}/{secret}"));
    succeed(client, "POST", VALIDATING, Some(&target)).await?;
    Ok(())
}

/// A webhook for every ConfigMap of the namespace, with the annotation for these Secrets.
fn target(secrets: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": TARGET, "annotations": {names::INJECT_CA_FROM_SECRET: secrets}},
        "webhooks": [{
            "name": "foreign.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail", "namespaceSelector": {"matchLabels": {"calls": NAMESPACE}},
            "clientConfig": {"service": {"namespace": NAMESPACE, "name": "hook", "path": "/validate"}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }],
        }],
    })
}

fn collection(resource: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{resource}")
}

fn object_path(resource: &str, name: &str) -> String {
    format!("{}/{name}", collection(resource))
}

fn path() -> String {
    format!("{VALIDATING}/{TARGET}")
}

/// Replaces an object.
async fn replace(client: &Client, resource: &str, object: &Value) -> anyhow::Result<()> {
    let name = object["metadata"]["name"].as_str().context("no name")?;
    succeed(client, "PUT", &object_path(resource, name), Some(object)).await?;
    Ok(())
}

/// Removes the trust bundle of the target as another client would.
async fn remove_bundle(client: &Client) -> anyhow::Result<()> {
    until(
        "the trust bundle was removed from the target",
        PATIENCE,
        async || {
            let mut target = get(client, &path()).await?.context("it does not exist")?;
            let client_config = target
                .pointer_mut("/webhooks/0/clientConfig")
                .and_then(Value::as_object_mut);
            client_config.context("no webhook")?.remove("caBundle");
            let answer = request::send(client, "PUT", &path(), Some(&target)).await?;
            Ok(check(answer.code == 200, || answer.to_string()))
        },
    )
    .await
}

/// Waits until the target trusts exactly these issuers.
async fn wait_for_issuers(client: &Client, issuers: &[&ForeignIssuer]) -> anyhow::Result<()> {
    until("the target trusts these issuers", PATIENCE, async || {
        let target = get(client, &path()).await?.context("it does not exist")?;
        Ok(check(bundle_of(&target, 0) == pem(issuers), || {
            target.to_string()
        }))
    })
    .await
}

/// Returns the trust bundle of a webhook, in PEM.
fn bundle_of(target: &Value, webhook: usize) -> String {
    let bundle = target["webhooks"][webhook]["clientConfig"]["caBundle"].as_str();
    let pem = bundle.and_then(|bundle| STANDARD.decode(bundle).ok());
    String::from_utf8(pem.unwrap_or_default()).unwrap_or_default()
}

/// Returns the certificates of these issuers in PEM, the oldest first.
pub(super) fn pem(issuers: &[&ForeignIssuer]) -> String {
    issuers
        .iter()
        .map(|issuer| issuer.0.certificate().to_pem())
        .collect()
}

impl ForeignIssuer {
    /// Creates the CA of a generation; later generations have later validity periods.
    pub(super) fn new(generation: u32) -> anyhow::Result<Self> {
        let terms = terms(generation)?;
        let ca = CertificateAuthority::self_signed(
            &dns_names()?,
            generation,
            KeyPair::generate()?.into(),
            &terms,
        )?;
        Ok(Self(ca))
    }

    /// The CA Secret of this issuer, which contains the CA of `after` instead if given.
    fn ca_secret(&self, after: Option<&Self>) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "ca", "annotations": {names::ALLOW_DIRECT_INJECTION: "true"}},
            "data": {"ca.crt": STANDARD.encode(pem(&[after.unwrap_or(self)]))},
        })
    }

    /// The Secret that the servers mount.
    fn serving_secret(&self) -> anyhow::Result<Value> {
        let key = KeyPair::generate()?.into();
        let leaf = self.0.issue(&dns_names()?, &key, &terms(3)?)?;
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "hook-cert"},
            "data": {"tls.crt": STANDARD.encode(leaf.to_pem()), "tls.key": STANDARD.encode(key.to_pem().as_bytes())},
        }))
    }
}

fn dns_names() -> anyhow::Result<DnsNames> {
    Ok(DnsNames::for_service("hook", NAMESPACE, &[])?)
}

fn terms(generation: u32) -> anyhow::Result<Terms> {
    let now = Timestamp::now();
    let mut serial: [u8; 16] = rand::random();
    serial[0] &= 0x7f;
    Ok(Terms {
        serial,
        now,
        validity: Validity {
            not_before: now - SignedDuration::from_hours(24 - i64::from(generation)),
            not_after: now + SignedDuration::from_hours(24),
        },
    })
}

impl Calls {
    /// Starts about 50 requests a second.
    fn start(client: &Client) -> Self {
        let (sent, failures) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
        let stop = CancellationToken::new();
        let (client, stopped) = (client.clone(), stop.clone());
        let (counted, failed) = (sent.clone(), failures.clone());
        let task = tokio::spawn(async move {
            let config_map = json!({"metadata": {"name": "call"}});
            let path = format!("{}?dryRun=All", collection("configmaps"));
            while !stopped.is_cancelled() {
                if let Err(error) = succeed(&client, "POST", &path, Some(&config_map)).await {
                    failed.lock().push(format!("{error:#}"));
                }
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self {
            sent,
            failures,
            stop,
            task,
        }
    }

    /// Waits until `count` further requests were sent.
    async fn at_least(&self, count: u64) -> anyhow::Result<()> {
        let goal = self.sent.load(Ordering::Relaxed) + count;
        until(&format!("{count} further calls"), PATIENCE, async || {
            let sent = self.sent.load(Ordering::Relaxed);
            Ok(check(sent >= goal, || sent.to_string()))
        })
        .await
    }

    async fn end(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await?;
        let failures = self.failures.lock();
        anyhow::ensure!(
            failures.is_empty(),
            "{} failed: {}",
            failures.len(),
            failures.join("\n")
        );
        Ok(())
    }
}
