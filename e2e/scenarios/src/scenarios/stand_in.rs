//! Targets with annotations of other CA injectors that Windlass answers.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Context;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use windlass_object::{
    ca_injectors::{
        CERT_MANAGER_CERTIFICATE, CERT_MANAGER_CERTIFICATE_NAME, CERT_MANAGER_CONSENT, CERT_MANAGER_SECRET,
        CERT_MANAGER_VERSION, CLUSTER_API_SECRET, CaInjector, SERVICE_CA, SERVICE_CA_SERVING_CERT,
    },
    names,
};

use super::{
    drift::{EXTENSION_CONFIGS, extension_config_crd},
    foreign::{self, certificates_of_bundle, define},
};
use crate::{
    operator::OperatorProcess,
    request,
    steps::{PATIENCE, VALIDATING, check, get, list, request_rotation, succeed, until},
    test_cluster::TestCluster,
};

/// The namespace of all Services and Secrets that targets refer to.
const NAMESPACE: &str = "asked";

/// How long a target must not be written.
const QUIET: Duration = Duration::from_secs(3);

/// Returns the operator that answers the annotations of all other CA injectors.
fn stand_in(cluster: &TestCluster) -> OperatorProcess {
    let mut operator = cluster.operator.clone();
    let all = CaInjector::ALL.map(CaInjector::name).join(",");
    operator.arguments.push(format!("--answer-annotations-of={all}"));
    operator
}

fn collection_path(group: &str, resource: &str) -> String {
    format!("{group}/namespaces/{NAMESPACE}/{resource}")
}

fn secret_collection() -> String {
    collection_path("/api/v1", "secrets")
}

fn target_path(name: &str) -> String {
    format!("{VALIDATING}/{name}")
}

async fn create_namespace(client: &Client) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    Ok(())
}

/// Creates a Secret with a new CA, and returns the CA.
async fn create_secret(client: &Client, name: &str, annotations: Value) -> anyhow::Result<String> {
    let ca = foreign::trust_bundle()?;
    let secret = json!({"metadata": {"name": name, "annotations": annotations}, "data": {"ca.crt": ca}});
    succeed(client, "POST", &secret_collection(), Some(&secret)).await?;
    Ok(ca)
}

/// Creates webhooks that call these Services, for a resource that does not exist.
async fn create_target(
    client: &Client,
    name: &str,
    annotations: Value,
    services: &[&str],
) -> anyhow::Result<()> {
    let webhooks: Vec<_> = services
        .iter()
        .map(|service| {
            json!({
                "name": format!("{service}.asked.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": NAMESPACE, "name": service}},
                "rules": [{
                    "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"],
                }],
            })
        })
        .collect();
    let target = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "annotations": annotations}, "webhooks": webhooks,
    });
    succeed(client, "POST", VALIDATING, Some(&target)).await?;
    Ok(())
}

fn certificates_at(target: &Value, pointer: &str) -> BTreeSet<String> {
    let bundle = target.pointer(pointer).and_then(Value::as_str);
    bundle.map(certificates_of_bundle).unwrap_or_default()
}

const FIRST: &str = "/webhooks/0/clientConfig/caBundle";

/// Waits until the value at `pointer` of an object has exactly the certificates of these bundles.
async fn wait_for_certificates(
    client: &Client,
    path: &str,
    pointer: &str,
    bundles: &[&str],
) -> anyhow::Result<()> {
    let expected: BTreeSet<_> = bundles
        .iter()
        .flat_map(|bundle| certificates_of_bundle(bundle))
        .collect();
    until(
        &format!("{path} has {} certificates", expected.len()),
        PATIENCE,
        async || {
            let target = get(client, path).await?.context("gone")?;
            Ok(check(certificates_at(&target, pointer) == expected, || {
                target.to_string()
            }))
        },
    )
    .await
}

/// Waits for an event about an object.
async fn wait_for_event(client: &Client, name: &str, reason: &str, part: &str) -> anyhow::Result<()> {
    until(
        &format!("an event about {name} contains: {part}"),
        PATIENCE,
        async || {
            let events = list(client, "/apis/events.k8s.io/v1/events").await?;
            let of_it: Vec<_> = events
                .iter()
                .filter(|event| event["regarding"]["name"] == name && event["reason"] == reason)
                .filter_map(|event| event["note"].as_str())
                .collect();
            Ok(check(of_it.iter().any(|note| note.contains(part)), || {
                of_it.join("\n")
            }))
        },
    )
    .await
}

async fn annotate(client: &Client, path: &str, annotations: Value) -> anyhow::Result<()> {
    let patch = json!({"metadata": {"annotations": annotations}});
    succeed(client, "PATCH", path, Some(&patch)).await?;
    Ok(())
}

/// The annotation names a Certificate of cert-manager. Its Secret is used once it has cert-manager's
/// annotation.
pub(super) async fn annotations_of_cert_manager_are_answered(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = stand_in(cluster).start()?;
    create_namespace(client).await?;
    let ask = json!({CERT_MANAGER_CERTIFICATE: format!("{NAMESPACE}/hook")});
    create_target(client, "by-certificate", ask, &["hook"]).await?;
    let definition = foreign::crd(CERT_MANAGER_VERSION, "Certificate", "certificates", true);
    define(client, &definition).await?;
    wait_for_event(
        client,
        "by-certificate",
        "NoTrustBundle",
        "waiting for Certificate",
    )
    .await?;
    let all = collection_path("/apis/cert-manager.io/v1", "certificates");
    let certificate = json!({
        "apiVersion": CERT_MANAGER_VERSION, "kind": "Certificate",
        "metadata": {"name": "hook"}, "spec": {"secretName": "first"},
    });
    succeed(client, "POST", &all, Some(&certificate)).await?;
    wait_for_event(client, "by-certificate", "NoTrustBundle", "waiting for Secret").await?;
    let first = create_secret(client, "first", json!({})).await?;
    wait_for_event(client, "by-certificate", "NoTrustBundle", "with the annotation").await?;
    let of_certificate = json!({CERT_MANAGER_CERTIFICATE_NAME: "hook"});
    annotate(
        client,
        &format!("{}/first", secret_collection()),
        of_certificate.clone(),
    )
    .await?;
    wait_for_certificates(client, &target_path("by-certificate"), FIRST, &[&first]).await?;

    // The previous CA stays trusted until servers are observed with a certificate of the new one.
    let second = create_secret(client, "second", of_certificate).await?;
    let moved = json!({"spec": {"secretName": "second"}});
    succeed(client, "PATCH", &format!("{all}/hook"), Some(&moved)).await?;
    wait_for_certificates(client, &target_path("by-certificate"), FIRST, &[&first, &second]).await?;

    let ask = json!({CERT_MANAGER_SECRET: format!("{NAMESPACE}/ca")});
    create_target(client, "by-secret", ask, &["hook"]).await?;
    let ca = create_secret(client, "ca", json!({names::ALLOW_DIRECT_INJECTION: "true"})).await?;
    wait_for_event(client, "by-secret", "NoTrustBundle", CERT_MANAGER_CONSENT).await?;
    annotate(
        client,
        &format!("{}/ca", secret_collection()),
        json!({CERT_MANAGER_CONSENT: "true"}),
    )
    .await?;
    wait_for_certificates(client, &target_path("by-secret"), FIRST, &[&ca]).await?;
    annotate(
        client,
        &target_path("by-secret"),
        json!({CERT_MANAGER_SECRET: null}),
    )
    .await?;
    wait_for_certificates(client, &target_path("by-secret"), FIRST, &[]).await
}

/// Each webhook gets the CA of the Service that it calls, and each annotated Service gets a certificate.
pub(super) async fn annotations_of_service_ca_are_answered_and_certificates_rotate(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = stand_in(cluster).start()?;
    create_namespace(client).await?;
    for name in ["one", "two"] {
        let service = json!({
            "metadata": {"name": name, "annotations": {SERVICE_CA_SERVING_CERT[0]: format!("{name}-cert")}},
            "spec": {"ports": [{"port": 443}]},
        });
        succeed(
            client,
            "POST",
            &collection_path("/api/v1", "services"),
            Some(&service),
        )
        .await?;
    }
    create_target(
        client,
        "by-service",
        json!({SERVICE_CA[0]: "true"}),
        &["one", "two"],
    )
    .await?;
    let trust = async |name: &str| {
        let secret = get(client, &format!("{}/{name}-cert", secret_collection())).await?;
        let trust = secret
            .as_ref()
            .and_then(|secret| secret["data"]["ca.crt"].as_str());
        anyhow::Ok(trust.unwrap_or_default().to_owned())
    };
    let both_carry = async || {
        for (index, name) in ["one", "two"].into_iter().enumerate() {
            until(
                &format!("the webhook of {name} has the CA of its Service"),
                PATIENCE,
                async || {
                    let target = get(client, &target_path("by-service")).await?.context("gone")?;
                    let carried =
                        certificates_at(&target, &format!("/webhooks/{index}/clientConfig/caBundle"));
                    let trust = certificates_of_bundle(&trust(name).await?);
                    let has_it = !trust.is_empty() && carried == trust;
                    Ok(check(has_it, || target.to_string()))
                },
            )
            .await?;
        }
        anyhow::Ok(())
    };
    both_carry().await?;
    let first = trust("one").await?;
    request_rotation(client, NAMESPACE, "one", "ca:compromised").await?;
    until("another CA is in the Secret", PATIENCE, async || {
        let trust = trust("one").await?;
        Ok(check(trust != first, || "the CA is unchanged".to_owned()))
    })
    .await?;
    both_carry().await
}

/// Cluster API does not require an opt-in annotation of the Secret.
pub(super) async fn annotations_of_cluster_api_are_answered(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = stand_in(cluster).start()?;
    create_namespace(client).await?;
    define(client, &extension_config_crd()).await?;
    let ca = create_secret(client, "ca", json!({})).await?;
    let config = json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": {"name": "asking", "annotations": {CLUSTER_API_SECRET: format!("{NAMESPACE}/ca")}},
        "spec": {"clientConfig": {"service": {"namespace": NAMESPACE, "name": "hook"}}},
    });
    succeed(client, "POST", EXTENSION_CONFIGS, Some(&config)).await?;
    let path = format!("{EXTENSION_CONFIGS}/asking");
    wait_for_certificates(client, &path, "/spec/clientConfig/caBundle", &[&ca]).await
}

/// An injector that renews its Lease is running. One without leader election is detected by its writes.
pub(super) async fn targets_of_a_running_injector_are_not_changed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    create_namespace(client).await?;
    let (_, name) = CaInjector::CertManager.leases();
    let lease = |holder: &str| {
        let now = Timestamp::now();
        json!({
            "metadata": {"name": name},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60, "renewTime": format!("{now:.6}")},
        })
    };
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    succeed(client, "POST", leases, Some(&lease("cainjector-1"))).await?;
    let ca = create_secret(client, "ca", json!({CERT_MANAGER_CONSENT: "true"})).await?;
    let ask = json!({CERT_MANAGER_SECRET: format!("{NAMESPACE}/ca")});
    create_target(client, "asking", ask, &["hook"]).await?;
    let _operator = stand_in(cluster).start()?;
    wait_for_event(client, "asking", "ManagedElsewhere", "cert-manager is running").await?;
    tokio::time::sleep(QUIET).await;
    wait_for_certificates(client, &target_path("asking"), FIRST, &[]).await?;

    let path = format!("{leases}/{name}");
    succeed(client, "PATCH", &path, Some(&lease(""))).await?;
    wait_for_certificates(client, &target_path("asking"), FIRST, &[&ca]).await?;

    // An injector without a Lease writes its CA bundle, and again after every change.
    let theirs = foreign::trust_bundle()?;
    let written = json!([{"op": "replace", "path": FIRST, "value": theirs}]);
    let mut times = 0;
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < 3 * QUIET {
        let seen = get(client, &target_path("asking")).await?.context("gone")?;
        if certificates_at(&seen, FIRST) != certificates_of_bundle(&theirs) {
            let path = format!("{}?fieldManager=cainjector", target_path("asking"));
            let answer = request::send(client, "PATCH", &path, Some(&written)).await?;
            anyhow::ensure!(answer.code == 200, "{answer}");
            times += 1;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::ensure!(
        times == 1,
        "Windlass and the injector overwrote each other: {times} writes"
    );
    wait_for_certificates(client, &target_path("asking"), FIRST, &[&theirs]).await
}

/// The issuer may have changed its CA just before Windlass takes over, and some servers may not have reloaded
/// yet.
pub(super) async fn the_ca_of_a_stopped_injector_stays_trusted(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    create_namespace(client).await?;
    let ask = json!({CERT_MANAGER_SECRET: format!("{NAMESPACE}/ca")});
    create_target(client, "asking", ask, &["hook"]).await?;
    let before = foreign::trust_bundle()?;
    let written = json!([{"op": "add", "path": FIRST, "value": before}]);
    let path = format!("{}?fieldManager=cainjector", target_path("asking"));
    succeed(client, "PATCH", &path, Some(&written)).await?;
    let now = create_secret(client, "ca", json!({CERT_MANAGER_CONSENT: "true"})).await?;
    let _operator = stand_in(cluster).start()?;
    wait_for_certificates(client, &target_path("asking"), FIRST, &[&before, &now]).await
}
