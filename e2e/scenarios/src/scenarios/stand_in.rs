//! Targets that ask other CA injectors, for which Windlass stands in.

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

/// Where everything is that targets ask for.
const NAMESPACE: &str = "asked";

/// How long it is looked that somebody is left alone.
const QUIET: Duration = Duration::from_secs(3);

/// The operator, in the place of each of the others.
fn stand_in(cluster: &TestCluster) -> OperatorProcess {
    let mut operator = cluster.operator.clone();
    let all = CaInjector::ALL.map(CaInjector::name).join(",");
    operator.arguments.push(format!("--answer-annotations-of={all}"));
    operator
}

fn of_namespace(group: &str, resource: &str) -> String {
    format!("{group}/namespaces/{NAMESPACE}/{resource}")
}

fn secrets() -> String {
    of_namespace("/api/v1", "secrets")
}

fn target(name: &str) -> String {
    format!("{VALIDATING}/{name}")
}

async fn create_namespace(client: &Client) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    Ok(())
}

/// Creates a Secret with a CA of its own, which it returns.
async fn create_secret(client: &Client, name: &str, annotations: Value) -> anyhow::Result<String> {
    let ca = foreign::trust_bundle()?;
    let secret = json!({"metadata": {"name": name, "annotations": annotations}, "data": {"ca.crt": ca}});
    succeed(client, "POST", &secrets(), Some(&secret)).await?;
    Ok(ca)
}

/// Creates webhooks that call these Services, for a resource that there is not.
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

fn carried(target: &Value, pointer: &str) -> BTreeSet<String> {
    let bundle = target.pointer(pointer).and_then(Value::as_str);
    bundle.map(certificates_of_bundle).unwrap_or_default()
}

const FIRST: &str = "/webhooks/0/clientConfig/caBundle";

/// Waits until what is at `pointer` of an object has exactly the certificates of these.
async fn carries(client: &Client, path: &str, pointer: &str, bundles: &[&str]) -> anyhow::Result<()> {
    let expected: BTreeSet<_> = bundles
        .iter()
        .flat_map(|bundle| certificates_of_bundle(bundle))
        .collect();
    until(
        &format!("{path} carries {} certificates", expected.len()),
        PATIENCE,
        async || {
            let target = get(client, path).await?.context("gone")?;
            Ok(check(carried(&target, pointer) == expected, || {
                target.to_string()
            }))
        },
    )
    .await
}

/// Waits until an event says something of an object.
async fn told(client: &Client, name: &str, reason: &str, part: &str) -> anyhow::Result<()> {
    until(&format!("{name} is told: {part}"), PATIENCE, async || {
        let events = list(client, "/apis/events.k8s.io/v1/events").await?;
        let of_it: Vec<_> = events
            .iter()
            .filter(|event| event["regarding"]["name"] == name && event["reason"] == reason)
            .filter_map(|event| event["note"].as_str())
            .collect();
        Ok(check(of_it.iter().any(|note| note.contains(part)), || {
            of_it.join("\n")
        }))
    })
    .await
}

async fn annotate(client: &Client, path: &str, annotations: Value) -> anyhow::Result<()> {
    let patch = json!({"metadata": {"annotations": annotations}});
    succeed(client, "PATCH", path, Some(&patch)).await?;
    Ok(())
}

/// A Certificate of cert-manager is asked for by its name, and its Secret is believed once cert-manager has marked it.
pub(super) async fn what_cert_manager_is_asked_for_is_injected(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = stand_in(cluster).start()?;
    create_namespace(client).await?;
    let ask = json!({CERT_MANAGER_CERTIFICATE: format!("{NAMESPACE}/hook")});
    create_target(client, "by-certificate", ask, &["hook"]).await?;
    let definition = foreign::crd(CERT_MANAGER_VERSION, "Certificate", "certificates", true);
    define(client, &definition).await?;
    told(
        client,
        "by-certificate",
        "NoTrustBundle",
        "waiting for Certificate",
    )
    .await?;
    let all = of_namespace("/apis/cert-manager.io/v1", "certificates");
    let certificate = json!({
        "apiVersion": CERT_MANAGER_VERSION, "kind": "Certificate",
        "metadata": {"name": "hook"}, "spec": {"secretName": "first"},
    });
    succeed(client, "POST", &all, Some(&certificate)).await?;
    told(client, "by-certificate", "NoTrustBundle", "waiting for Secret").await?;
    let first = create_secret(client, "first", json!({})).await?;
    told(client, "by-certificate", "NoTrustBundle", "with the annotation").await?;
    let of_certificate = json!({CERT_MANAGER_CERTIFICATE_NAME: "hook"});
    annotate(client, &format!("{}/first", secrets()), of_certificate.clone()).await?;
    carries(client, &target("by-certificate"), FIRST, &[&first]).await?;

    // What it gave before is trusted until servers are seen under what it gives now.
    let second = create_secret(client, "second", of_certificate).await?;
    let moved = json!({"spec": {"secretName": "second"}});
    succeed(client, "PATCH", &format!("{all}/hook"), Some(&moved)).await?;
    carries(client, &target("by-certificate"), FIRST, &[&first, &second]).await?;

    let ask = json!({CERT_MANAGER_SECRET: format!("{NAMESPACE}/ca")});
    create_target(client, "by-secret", ask, &["hook"]).await?;
    let ca = create_secret(client, "ca", json!({names::ALLOW_DIRECT_INJECTION: "true"})).await?;
    told(client, "by-secret", "NoTrustBundle", CERT_MANAGER_CONSENT).await?;
    annotate(
        client,
        &format!("{}/ca", secrets()),
        json!({CERT_MANAGER_CONSENT: "true"}),
    )
    .await?;
    carries(client, &target("by-secret"), FIRST, &[&ca]).await?;
    annotate(client, &target("by-secret"), json!({CERT_MANAGER_SECRET: null})).await?;
    carries(client, &target("by-secret"), FIRST, &[]).await
}

/// Each webhook gets the CA of the Service that it calls, and each Service that asks a certificate.
pub(super) async fn what_service_ca_is_asked_for_is_issued_and_rotated(
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
            &of_namespace("/api/v1", "services"),
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
        let secret = get(client, &format!("{}/{name}-cert", secrets())).await?;
        let trust = secret
            .as_ref()
            .and_then(|secret| secret["data"]["ca.crt"].as_str());
        anyhow::Ok(trust.unwrap_or_default().to_owned())
    };
    let both_carry = async || {
        for (index, name) in ["one", "two"].into_iter().enumerate() {
            until(
                &format!("the webhook of {name} has its CA"),
                PATIENCE,
                async || {
                    let target = get(client, &target("by-service")).await?.context("gone")?;
                    let carried = carried(&target, &format!("/webhooks/{index}/clientConfig/caBundle"));
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
    until("another CA is trusted", PATIENCE, async || {
        let trust = trust("one").await?;
        Ok(check(trust != first, || "the same as before".to_owned()))
    })
    .await?;
    both_carry().await
}

/// Cluster API asks no consent of the Secret.
pub(super) async fn what_cluster_api_is_asked_for_is_injected(cluster: &TestCluster) -> anyhow::Result<()> {
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
    carries(client, &path, "/spec/clientConfig/caBundle", &[&ca]).await
}

/// Who renews its Lease is at work; who elects no leader shows it by what it writes.
pub(super) async fn an_injector_that_is_at_work_is_left_alone(cluster: &TestCluster) -> anyhow::Result<()> {
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
    told(client, "asking", "ManagedElsewhere", "cert-manager is at work").await?;
    tokio::time::sleep(QUIET).await;
    carries(client, &target("asking"), FIRST, &[]).await?;

    let path = format!("{leases}/{name}");
    succeed(client, "PATCH", &path, Some(&lease(""))).await?;
    carries(client, &target("asking"), FIRST, &[&ca]).await?;

    // One without a Lease writes what it thinks is right, and again whenever it is changed.
    let theirs = foreign::trust_bundle()?;
    let written = json!([{"op": "replace", "path": FIRST, "value": theirs}]);
    let mut times = 0;
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < 3 * QUIET {
        let seen = get(client, &target("asking")).await?.context("gone")?;
        if carried(&seen, FIRST) != certificates_of_bundle(&theirs) {
            let path = format!("{}?fieldManager=cainjector", target("asking"));
            let answer = request::send(client, "PATCH", &path, Some(&written)).await?;
            anyhow::ensure!(answer.code == 200, "{answer}");
            times += 1;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::ensure!(times == 1, "two writers: {times} turns");
    carries(client, &target("asking"), FIRST, &[&theirs]).await
}

/// An issuer may have changed its CA just before Windlass takes over: servers have not all read what is new.
pub(super) async fn what_an_injector_has_left_behind_is_trusted_further(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    create_namespace(client).await?;
    let ask = json!({CERT_MANAGER_SECRET: format!("{NAMESPACE}/ca")});
    create_target(client, "asking", ask, &["hook"]).await?;
    let before = foreign::trust_bundle()?;
    let written = json!([{"op": "add", "path": FIRST, "value": before}]);
    let path = format!("{}?fieldManager=cainjector", target("asking"));
    succeed(client, "PATCH", &path, Some(&written)).await?;
    let now = create_secret(client, "ca", json!({CERT_MANAGER_CONSENT: "true"})).await?;
    let _operator = stand_in(cluster).start()?;
    carries(client, &target("asking"), FIRST, &[&before, &now]).await
}
