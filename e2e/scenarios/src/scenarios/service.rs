//! Services that are missing or renamed, have no endpoints, or have endpoints that do not serve: the
//! conditions report it, and it recovers.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use windlass_object::names;
use windlass_trust::{
    pki::{Credentials, DnsNames, pem},
    rotation::Reason,
};

use super::traffic;
use crate::{
    request::text,
    sample::{self, CERTIFICATE},
    steps::{self, PATIENCE, check, delete, get, ready, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

const NAMESPACE: &str = "platform";

/// Addresses without a host (RFC 5737).
const NOWHERE: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

pub(super) async fn a_certificate_follows_its_service(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let certificates = serving_certificates(NAMESPACE);
    let certificate = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate", "metadata": {"name": "hook"},
        "spec": {"serviceName": "hook", "secretName": "hook-cert"},
    });
    succeed(&cluster.client, "POST", &certificates, Some(&certificate)).await?;
    let path = format!("{certificates}/hook");
    // The certificate is issued without the Service: pods that mount the Secret wait for it.
    wait_for_certificate(cluster, "hook").await?;
    let is_not_ready =
        async |reason, name: &str| wait_for_condition(cluster, &path, "Ready", "False", reason, name).await;
    is_not_ready(Reason::NoService, "Service hook").await?;

    let services = format!("/api/v1/namespaces/{NAMESPACE}/services");
    succeed(&cluster.client, "POST", &services, Some(&service("hook"))).await?;
    is_not_ready(Reason::NoReadyEndpoints, "Service hook").await?;

    let slices = slice_collection(NAMESPACE);
    succeed(
        &cluster.client,
        "POST",
        &slices,
        Some(&unreachable_slice("hook", "https")),
    )
    .await?;
    wait_for_condition(
        cluster,
        &path,
        "Served",
        "Unknown",
        Reason::Unobservable,
        NOWHERE[0],
    )
    .await?;
    delete(&cluster.client, &format!("{slices}/nowhere")).await?;
    is_not_ready(Reason::NoReadyEndpoints, "Service hook").await?;

    delete(&cluster.client, &format!("{services}/hook")).await?;
    succeed(&cluster.client, "POST", &services, Some(&service("renamed"))).await?;
    is_not_ready(Reason::NoService, "spec.serviceName").await?;
    let patch = json!({"spec": {"serviceName": "renamed"}});
    succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
    wait_for_certificate(cluster, "renamed").await?;
    is_not_ready(Reason::NoReadyEndpoints, "Service renamed").await
}

/// Half of the endpoints of a Service do not answer. They are named, the other endpoints serve, and timeouts
/// do not stop repairs of targets.
pub(super) async fn endpoints_that_do_not_serve_are_named(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let slices = slice_collection("sample-system");
    let service = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?;
    let nowhere = unreachable_slice(CERTIFICATE, text(&service, "/spec/ports/0/name"));
    succeed(&cluster.client, "POST", &slices, Some(&nowhere)).await?;
    let path = sample::SERVING_CERTIFICATE;
    wait_for_condition(cluster, path, "Ready", "True", Reason::Unobservable, "").await?;
    wait_for_condition(
        cluster,
        path,
        "Served",
        "Unknown",
        Reason::Unobservable,
        NOWHERE[0],
    )
    .await?;
    let certificate = get(&cluster.client, path)
        .await?
        .context("no ServingCertificate")?;
    anyhow::ensure!(
        certificate["status"]["endpoints"] == json!({"ready": 4, "current": 2}),
        "{}",
        certificate["status"]["endpoints"]
    );
    delete(&cluster.client, &format!("{slices}/nowhere")).await?;
    sample::settled(cluster).await?;
    wait_for_condition(cluster, path, "Ready", "True", Reason::Current, "").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// An endpoint that cannot be connected to may serve a certificate of a previous CA. That CA stays trusted,
/// and further rotations still finish.
pub(super) async fn an_unreachable_endpoint_keeps_its_ca_trusted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    let authorities = async || {
        let bundle = STANDARD.decode(sample::trust_bundle(cluster).await?)?;
        Ok::<_, anyhow::Error>(pem::parse(&bundle)?)
    };
    let first = authorities().await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let service = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?;
    let mut nowhere = unreachable_slice(CERTIFICATE, text(&service, "/spec/ports/0/name"));
    for endpoint in nowhere["endpoints"].as_array_mut().into_iter().flatten() {
        // Endpoints that are not ready get no calls.
        endpoint["conditions"]["ready"] = json!(false);
    }
    let slices = slice_collection("sample-system");
    succeed(&cluster.client, "POST", &slices, Some(&nowhere)).await?;
    for held in 1..=2 {
        let (client, path) = (&cluster.client, sample::SERVING_CERTIFICATE);
        let request = steps::request_rotation(client, "sample-system", CERTIFICATE, "ca").await?;
        until("the CA rotation is finished", PATIENCE, async || {
            let certificate = get(client, path).await?.unwrap_or_default();
            let is_done = certificate["status"]["rotated"] == *request;
            Ok(check(is_done, || certificate["status"].to_string()))
        })
        .await?;
        let now = authorities().await?;
        anyhow::ensure!(
            first.iter().all(|authority| now.contains(authority)) && now.len() == held + 1,
            "{} CAs are trusted after {held} rotations",
            now.len()
        );
    }
    load.at_least(50).await?;
    delete(&cluster.client, &format!("{slices}/nowhere")).await?;
    sample::settled(cluster).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    let last = authorities().await?;
    anyhow::ensure!(last.len() == 2, "{} CAs are trusted at the end", last.len());
    Ok(())
}

/// Kubernetes stops updating the endpoints of a Service while its pods are replaced. Windlass triggers an
/// update, so the upgrade finishes.
pub(super) async fn endpoints_that_kubernetes_does_not_update_are_refreshed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    let faults = cluster.backing.faults()?;
    faults.ignore_pods();
    cluster.bundle("sample.v2")?;
    sample::set_source(cluster, "sample.v2").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    faults.resume_pods();
    let service = get(&cluster.client, sample::GREEN_SERVICE)
        .await?
        .context("no Service")?;
    anyhow::ensure!(
        service["metadata"]["annotations"][names::ENDPOINTS_REFRESHED].is_string(),
        "the endpoints were not refreshed: {}",
        service["metadata"]
    );
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

fn slice_collection(namespace: &str) -> String {
    format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")
}

/// Returns a Service without a selector: its endpoints are created manually.
fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 9443, "protocol": "TCP"}]},
    })
}

/// Returns ready endpoints of a Service at addresses without a host.
fn unreachable_slice(service: &str, port: &str) -> Value {
    let endpoints = NOWHERE.map(|address| json!({"addresses": [address], "conditions": {"ready": true}}));
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "nowhere", "labels": {
            "kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "windlass-e2e",
        }},
        "ports": [{"name": port, "port": 9443, "protocol": "TCP"}],
        "endpoints": endpoints,
    })
}

/// Waits for a condition with a status and a reason, whose message contains `name`.
async fn wait_for_condition(
    cluster: &TestCluster,
    path: &str,
    condition_type: &str,
    status: &str,
    reason: Reason,
    name: &str,
) -> anyhow::Result<()> {
    let what = format!("{path} has {condition_type}={status} {reason} with {name:?} in its message");
    until(&what, PATIENCE, async || {
        let object = get(&cluster.client, path).await?.unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array();
        let is_reported = conditions.into_iter().flatten().any(|condition| {
            condition["type"] == condition_type
                && condition["status"] == status
                && condition["reason"] == reason.to_string()
                && text(condition, "/message").contains(name)
        });
        Ok(check(is_reported, || crate::steps::conditions(&object)))
    })
    .await
}

/// Waits until the Secret contains a certificate for the Service. It must never be invalid.
async fn wait_for_certificate(cluster: &TestCluster, service: &str) -> anyhow::Result<()> {
    let names = DnsNames::for_service(service, NAMESPACE, &[])?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/hook-cert");
    until(
        &format!("the certificate is for {service}"),
        PATIENCE,
        async || {
            let Some(secret) = get(&cluster.client, &path).await? else {
                return Ok(Err("no Secret".to_owned()));
            };
            let data = |key: &str| STANDARD.decode(text(&secret["data"], &format!("/{key}")));
            let credentials = Credentials::from_pem(&data("tls.crt")?, &data("tls.key")?)?;
            anyhow::ensure!(!pem::parse(&data("ca.crt")?)?.is_empty(), "no trust bundle");
            let leaf = credentials.leaf();
            Ok(check(leaf.is_for(&names), || {
                format!("it is for {:?}", leaf.dns_names())
            }))
        },
    )
    .await
}
