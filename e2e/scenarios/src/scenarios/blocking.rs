//! Webhooks that block what their own bundle needs.

use serde_json::json;

use crate::{
    request::text,
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, PATIENCE, VALIDATING, bundle_deployment, check, get, list, ready, succeed, until,
    },
    test_cluster::TestCluster,
};

const ENDPOINTS: &str = "/apis/discovery.k8s.io/v1/namespaces/sample-system/endpointslices";

pub(super) async fn a_dead_webhook_does_not_keep_its_own_server_from_coming_back(
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
        Ok(check(left == 0, || format!("{left} endpoints are left")))
    })
    .await?;
    let _running = cluster.operator.start()?;
    until("the server is back, and called", PATIENCE, async || {
        let is_back = get(&cluster.client, sample::DEPLOYMENT).await?.is_some();
        let webhooks = list(&cluster.client, VALIDATING).await?;
        let is_armed = webhooks
            .iter()
            .any(|webhook| text(webhook, "/metadata/name").contains("vwidget"));
        Ok(check(is_back && is_armed, || {
            format!("Deployment: {is_back}, webhook: {is_armed}")
        }))
    })
    .await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    Ok(())
}
