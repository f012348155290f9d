//! Installs, and the upgrade to a newer bundle.

use anyhow::Context;
use serde_json::json;

use super::{traffic, upgrade::serves};
use crate::{
    request::{self, text},
    resource::Expectation,
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, MUTATING, PATIENCE, VALIDATING, check, get, install, list, ready, succeed, until,
    },
    test_cluster::TestCluster,
};

pub(super) async fn all_three_webhook_kinds_are_armed_and_serve(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let deployed = sample::install(cluster, "sample.v1").await?;
    for field in ["conversions", "webhooks"] {
        let states = deployed["status"][field]
            .as_array()
            .context("the status has no states")?;
        anyhow::ensure!(!states.is_empty(), "status.{field} is empty");
        anyhow::ensure!(
            states.iter().all(|entry| entry["state"] == "Armed"),
            "not all armed: {states:?}"
        );
    }
    anyhow::ensure!(
        list(&cluster.client, VALIDATING).await?.len() == 1,
        "one validating configuration"
    );
    anyhow::ensure!(
        list(&cluster.client, MUTATING).await?.len() == 1,
        "one mutating configuration"
    );
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(200).await?;
    traffic::finish(load).await?;
    Ok(())
}

pub(super) async fn a_bundle_with_only_a_conversion_is_armed(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(
        &cluster.client,
        "gadgets",
        "gadgets-system",
        &cluster.bundle("conversion-only")?,
    )
    .await?;
    let gadget = json!({
        "apiVersion": "sample.windlass.dev/v1", "kind": "Gadget", "metadata": {"name": "one"}, "spec": {"size": 7},
    });
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let collection = |version| format!("/apis/{}/{version}/namespaces/traffic/gadgets", sample::GROUP);
    succeed(&cluster.client, "POST", &collection("v1"), Some(&gadget)).await?;
    let converted = get(&cluster.client, &format!("{}/one", collection("v1beta1"))).await?;
    let width = converted.map(|object| object["spec"]["width"].clone());
    anyhow::ensure!(width == Some(json!("7")), "converted to width {width:?}");
    Ok(())
}

pub(super) async fn admission_webhooks_of_one_namespace_skip_others(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let directory = cluster.bundle("own-namespace")?;
    let folder = directory
        .file_name()
        .and_then(|name| name.to_str())
        .context("the bundle has no name")?;
    let mut object = crate::steps::bundle_deployment("own", "own-system", folder);
    object["spec"]["watchNamespaces"] = json!(["own-system"]);
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    let configurations = list(&cluster.client, VALIDATING).await?;
    let selector = &configurations.first().context("no configuration")?["webhooks"][0]["namespaceSelector"];
    let expected = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["own-system"]},
    ]});
    anyhow::ensure!(*selector == expected, "namespaceSelector is {selector}");
    Ok(())
}

pub(super) async fn an_upgrade_under_load_fails_no_call(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    cluster.bundle("sample.v2")?;
    sample::set_source(cluster, "sample.v2").await?;
    // Clients may use the new version as soon as it is served.
    let collection = sample::widgets(traffic::NAMESPACE, "v2");
    until("v2 is served", PATIENCE, async || {
        let answer = request::send(&cluster.client, "GET", &collection, None).await?;
        Ok(check(answer.code != 404, || answer.to_string()))
    })
    .await?;
    let newest = traffic::start_in(
        cluster,
        "traffic-v2",
        &["v1", "v1beta1", "v2"],
        Expectation::Converted,
    )
    .await?;
    let upgraded = ready(&cluster.client, "sample", PATIENCE).await?;
    newest.at_least(100).await?;
    traffic::finish(newest).await?;
    anyhow::ensure!(
        text(&upgraded, "/status/installed/name") == "sample.v2",
        "the installed bundle is {}",
        upgraded["status"]["installed"]
    );
    load.at_least(100).await?;
    traffic::finish(load).await?;
    let events = list(&cluster.client, "/apis/events.k8s.io/v1/events").await?;
    anyhow::ensure!(
        events
            .iter()
            .any(|event| text(event, "/reason") == "CanaryStarting"),
        "the new revision had no canary"
    );
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(
        serves(&crd, "v2"),
        "the new version is not served: {}",
        crd["spec"]["versions"]
    );
    let load = traffic::start(cluster, &["v1", "v1beta1", "v2"]).await?;
    load.at_least(100).await?;
    traffic::finish(load).await?;
    let unknown = request::send(
        &cluster.client,
        "GET",
        "/apis/sample.windlass.dev/v3/widgets",
        None,
    )
    .await?;
    anyhow::ensure!(unknown.code == 404, "an undeclared version is served: {unknown}");
    Ok(())
}
