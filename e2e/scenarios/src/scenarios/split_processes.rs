//! Two processes with different controllers: one for certificates, without the permissions for bundles, and
//! one for bundles.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use windlass_object::names;

use super::traffic;
use crate::{
    operator::{self, Half},
    request::text,
    sample,
    steps::{PATIENCE, VALIDATING, check, get, gone, rotate, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

/// The namespace of objects that no bundle contains.
const NAMESPACE: &str = "platform";

pub(super) async fn certificates_and_bundles_run_in_separate_processes(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let certificates = cluster.certificates_half().await?;
    let _certificates = certificates.start()?;
    let bundles = cluster
        .operator
        .replica("windlass-bundles")
        .with_half(Half::Bundles);
    let _bundles = bundles.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    rotate(
        &cluster.client,
        sample::NAMESPACE,
        sample::CERTIFICATE,
        "ca",
        PATIENCE,
    )
    .await?;
    traffic::finish(load).await?;
    check_annotations(cluster).await
}

fn collection(namespace: &str, plural: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{plural}")
}

/// Creates a namespace with a Service that requests a certificate by annotation, and returns the Secret.
pub(super) async fn certified_service(cluster: &TestCluster, namespace: &str) -> anyhow::Result<Value> {
    traffic::create_namespace(cluster, namespace).await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "hook", "annotations": {names::SERVING_CERT_SECRET: "hook-cert"}},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 9443, "protocol": "TCP"}]},
    });
    succeed(
        &cluster.client,
        "POST",
        &collection(namespace, "services"),
        Some(&service),
    )
    .await?;
    let path = format!("{}/hook-cert", collection(namespace, "secrets"));
    until("the Secret exists", PATIENCE, async || {
        let secret = get(&cluster.client, &path).await?.unwrap_or_default();
        let is_there = secret["data"]["ca.crt"].is_string();
        Ok(if is_there {
            Ok(secret)
        } else {
            Err(secret["metadata"].to_string())
        })
    })
    .await
}

/// Checks that requests by annotation are fulfilled, and that removing them removes the results.
async fn check_annotations(cluster: &TestCluster) -> anyhow::Result<()> {
    let secret = certified_service(cluster, NAMESPACE).await?;
    let trust = text(&secret, "/data/ca.crt").to_owned();
    let client = &cluster.client;
    let (services, secrets) = (
        collection(NAMESPACE, "services"),
        collection(NAMESPACE, "secrets"),
    );
    let copy = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"ca.crt": trust},
        "metadata": {
            "name": "copy", "labels": {names::SERVING_CERTIFICATE: "hook"},
            "annotations": {names::ALLOW_DIRECT_INJECTION: "true"},
        },
    });
    succeed(client, "POST", &secrets, Some(&copy)).await?;
    succeed(client, "POST", VALIDATING, Some(&requesting_webhook())).await?;
    let path = format!("{VALIDATING}/halves");
    until("the CA is injected", PATIENCE, async || {
        let target = get(client, &path).await?.unwrap_or_default();
        let carried = STANDARD.decode(text(&target, "/webhooks/0/clientConfig/caBundle"))?;
        let wanted = STANDARD.decode(&trust)?;
        Ok(check(carried.trim_ascii() == wanted.trim_ascii(), || {
            target.to_string()
        }))
    })
    .await?;
    let no_annotation = json!({"metadata": {"annotations": {names::SERVING_CERT_SECRET: null}}});
    succeed(client, "PATCH", &format!("{services}/hook"), Some(&no_annotation)).await?;
    gone(client, &format!("{}/hook", serving_certificates(NAMESPACE))).await?;
    gone(
        client,
        &format!(
            "/api/v1/namespaces/{}/secrets/{NAMESPACE}.hook",
            operator::NAMESPACE
        ),
    )
    .await
}

/// A webhook configuration that receives no traffic.
fn requesting_webhook() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "halves", "annotations": {names::INJECT_CA_FROM_SECRET: format!("{NAMESPACE}/copy")}},
        "webhooks": [{
            "name": "halves.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore",
            "clientConfig": {"service": {"namespace": NAMESPACE, "name": "hook"}},
            "rules": [{
                "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["nothings"],
            }],
        }],
    })
}
