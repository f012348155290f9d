//! Webhooks that block objects of their own bundle, or of others.

use anyhow::Context;
use serde_json::json;

use super::upgrade;
use crate::{
    request::text,
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, PATIENCE, VALIDATING, bundle_deployment, check, get, list, ready, succeed, until,
    },
    test_cluster::TestCluster,
};

const ENDPOINTS: &str = "/apis/discovery.k8s.io/v1/namespaces/sample-system/endpointslices";

pub(super) async fn a_dead_webhook_does_not_block_its_own_server(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let running = cluster.operator.start()?;
    let bundle = cluster.add_bundle(&sample::bundle("sample.v1"), "blocking")?;
    let rule = "resources: [widgets]\n      scope: Namespaced\n";
    let more = format!(
        "{rule}    - apiGroups: [apps]\n      apiVersions: [v1]\n      operations: [CREATE]\n      resources: [deployments]\n      scope: Namespaced\n"
    );
    cluster.edit(&bundle, rule, &more)?;
    let mut object = bundle_deployment("sample", sample::NAMESPACE, "blocking");
    object["spec"]["allowBlockingWebhooks"] = json!(true);
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;

    running.kill().await?;
    succeed(&cluster.client, "DELETE", sample::DEPLOYMENT, None).await?;
    until("no pod answers", PATIENCE, async || {
        let slices = list(&cluster.client, ENDPOINTS).await?;
        let endpoints = slices
            .iter()
            .filter_map(|slice| slice["endpoints"].as_array())
            .map(Vec::len);
        let left: usize = endpoints.sum();
        Ok(check(left == 0, || format!("{left} endpoints remain")))
    })
    .await?;
    let _running = cluster.operator.start()?;
    until("the server is back, and called", PATIENCE, async || {
        let is_back = get(&cluster.client, sample::DEPLOYMENT).await?.is_some();
        let is_armed = widget_webhook(cluster).await?.is_some();
        Ok(check(is_back && is_armed, || {
            format!("Deployment: {is_back}, webhook: {is_armed}")
        }))
    })
    .await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

/// A Deployment is scaled, and its third pod cannot start.
pub(super) async fn traffic_is_repaired_although_a_replica_is_missing(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let nowhere = json!({"namespace": "default", "name": "nowhere", "path": "/"});
    let blocker = json!({"metadata": {"name": "no-more-pods"}, "webhooks": [{
        "name": "pods.example.com", "clientConfig": {"service": nowhere}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 1,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": sample::NAMESPACE}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
    }]});
    succeed(&cluster.client, "POST", VALIDATING, Some(&blocker)).await?;
    let scale = format!("{}/scale?fieldManager=kubectl", sample::DEPLOYMENT);
    succeed(
        &cluster.client,
        "PATCH",
        &scale,
        Some(&json!({"spec": {"replicas": 3}})),
    )
    .await?;
    upgrade::wait_until_stopped(cluster, "RollingOut", "2 of 3 replicas").await?;

    let path = sample::SERVICE;
    let before = get(&cluster.client, path).await?.context("no Service")?["spec"].clone();
    let elsewhere = json!({"spec": {"selector": {"app": "elsewhere"}}});
    succeed(&cluster.client, "PATCH", path, Some(&elsewhere)).await?;
    until("the Service selects the previous pods", PATIENCE, async || {
        let there = get(&cluster.client, path).await?.unwrap_or_default();
        let is_back = there["spec"]["selector"] == before["selector"];
        Ok(check(is_back, || there["spec"]["selector"].to_string()))
    })
    .await?;
    let webhook = widget_webhook(cluster).await?.context("no webhook of widgets")?;
    let webhook = format!("{VALIDATING}/{webhook}");
    succeed(&cluster.client, "DELETE", &webhook, None).await?;
    until("the webhook is back", PATIENCE, async || {
        Ok(check(widget_webhook(cluster).await?.is_some(), String::new))
    })
    .await?;
    succeed(
        &cluster.client,
        "DELETE",
        &format!("{VALIDATING}/no-more-pods"),
        None,
    )
    .await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}

/// The name of the ValidatingWebhookConfiguration of widgets.
async fn widget_webhook(cluster: &TestCluster) -> anyhow::Result<Option<String>> {
    let webhooks = list(&cluster.client, VALIDATING).await?;
    let mut names = webhooks.iter().map(|webhook| text(webhook, "/metadata/name"));
    Ok(names.find(|name| name.contains("vwidget")).map(str::to_owned))
}
