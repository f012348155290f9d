//! NetworkPolicies between Windlass and webhook servers.

use anyhow::Context;
use serde_json::{Value, json};

use super::{installation, traffic};
use crate::{
    request::text,
    sample::{self, NAMESPACE},
    steps::{self, PATIENCE, check, current, delete, get, list, ready, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/sample-system/networkpolicies";

/// Only the API server may connect to the sample, not Windlass: a rotation waits, and goes on without the
/// policy.
pub(super) async fn a_network_policy_against_windlass_fails_no_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    installation::install(cluster, &windlass::commands::manifests::image()).await?;
    installation::install_sample(cluster).await?;
    let load = traffic::start_with_newest(cluster).await?;
    load.at_least(50).await?;
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "api-server-only"},
        "spec": {
            "podSelector": {}, "policyTypes": ["Ingress"],
            "ingress": [{"from": api_server_blocks(cluster).await?}],
        },
    });
    succeed(&cluster.client, "POST", POLICIES, Some(&policy)).await?;

    let certificate = format!("{}/{}", serving_certificates(NAMESPACE), sample::CERTIFICATE);
    steps::request_rotation(&cluster.client, NAMESPACE, sample::CERTIFICATE, "ca").await?;
    let is_served = async |status: &'static str, reason: &'static str| {
        until(
            &format!("the condition Served is {status}"),
            PATIENCE,
            async || {
                let object = get(&cluster.client, &certificate)
                    .await?
                    .context("no ServingCertificate")?;
                let served = current(&object, "Served", status);
                let is_reported = served.is_some_and(|condition| condition["reason"] == reason);
                Ok(check(is_reported, || object["status"].to_string()))
            },
        )
        .await
    };
    is_served("Unknown", "Unobservable").await?;
    load.at_least(50).await?;
    delete(&cluster.client, &format!("{POLICIES}/api-server-only")).await?;
    is_served("True", "Current").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    traffic::finish(load).await.map(drop)
}

/// The addresses from which API servers connect to pods.
async fn api_server_blocks(cluster: &TestCluster) -> anyhow::Result<Vec<Value>> {
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let mut blocks = Vec::new();
    for slice in list(&cluster.client, slices).await? {
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            let address = text(endpoint, "/addresses/0");
            let bits = if address.contains(':') { 128 } else { 32 };
            blocks.push(json!({"ipBlock": {"cidr": format!("{address}/{bits}")}}));
        }
    }
    anyhow::ensure!(!blocks.is_empty(), "the API server has no address");
    Ok(blocks)
}
