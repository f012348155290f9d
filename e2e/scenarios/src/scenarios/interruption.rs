//! Pods that cannot run beside those of the revision before, and what is said of an install that does not do all as its bundle asks.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;

use crate::{
    request::text,
    sample,
    steps::{BUNDLE_DEPLOYMENTS, PATIENCE, bundle_deployment, condition, current, get, gone, ready, succeed},
    test_cluster::TestCluster,
};

/// Puts a sample into the bundle folder whose pods use a port of their node.
fn on_the_host(cluster: &TestCluster, base: &str) -> anyhow::Result<PathBuf> {
    let bundle = cluster.bundle(base)?;
    put_on_the_host(cluster, &bundle)?;
    Ok(bundle)
}

/// Gives the pods of a sample a port of their node.
fn put_on_the_host(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<()> {
    let port = "                  containerPort: 9443\n";
    cluster.edit(bundle, port, &format!("{port}                  hostPort: 9443\n"))
}

/// Gives the Deployment of a sample another name.
fn rename(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<()> {
    for (from, to) in [
        (
            "- name: sample-operator\n        label",
            "- name: other-operator\n        label",
        ),
        (
            "deploymentName: sample-operator\n",
            "deploymentName: other-operator\n",
        ),
    ] {
        cluster.edit(bundle, from, to)?;
    }
    Ok(())
}

/// Adds a label to what a sample's Deployment selects.
fn select_more(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<()> {
    let label = "app.kubernetes.io/name: sample-operator\n";
    for (above, indent) in [("matchLabels:\n", 14), ("labels:\n", 16)] {
        let line = format!("{above}{}{label}", " ".repeat(indent));
        let more = format!("{line}{}control-plane: controller-manager\n", " ".repeat(indent));
        cluster.edit(bundle, &line, &more)?;
    }
    Ok(())
}

pub(super) async fn pods_on_a_port_of_their_node_give_way_to_others_only_when_allowed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    on_the_host(cluster, "sample.v1")?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;

    rename(cluster, &on_the_host(cluster, "sample.v2")?)?;
    sample::set_source(cluster, "sample.v2").await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    let refused = condition(&cluster.client, path, "Accepted", "False", PATIENCE).await?;
    let accepted = current(&refused, "Accepted", "False").context("it is accepted")?;
    anyhow::ensure!(
        text(accepted, "/reason") == "UpgradeInterrupts"
            && text(accepted, "/message").contains("those of Deployment sample-system/sample-operator"),
        "the refusal is {accepted}"
    );

    let allowed = json!({"spec": {"upgrade": {"allowInterruption": true}}});
    succeed(&cluster.client, "PATCH", path, Some(&allowed)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    gone(&cluster.client, sample::DEPLOYMENT).await?;

    // The same again with a selector, which cannot change: the Deployment ends with its pods.
    let newest = cluster.add_bundle(&sample::bundle("sample.v2"), "selects-more")?;
    put_on_the_host(cluster, &newest)?;
    rename(cluster, &newest)?;
    select_more(cluster, &newest)?;
    sample::set_source(cluster, "selects-more").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let path = sample::DEPLOYMENT.replace("/sample-operator", "/other-operator");
    let replaced = get(&cluster.client, &path).await?.context("no Deployment")?;
    anyhow::ensure!(
        replaced["spec"]["selector"]["matchLabels"]["control-plane"] == "controller-manager",
        "{}",
        replaced["spec"]["selector"]
    );
    Ok(())
}

pub(super) async fn what_is_overridden_and_what_is_not_asked_is_said(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let bundle = cluster.bundle("sample.v1")?;
    let replicas = "          replicas: 2\n";
    cluster.edit(
        &bundle,
        replicas,
        "          replicas: 1\n          strategy: {type: Recreate}\n",
    )?;
    let unknown = "    - {apiGroups: [elsewhere.example.com], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}\n";
    let rules = "    rules:\n    - apiGroups: [sample.windlass.dev]\n      apiVersions: [v1, v1beta1]\n      operations: [CREATE, UPDATE]\n      \
                 resources: [widgets]\n      scope: Namespaced\n  - type: ConversionWebhook\n";
    cluster.edit(
        &bundle,
        rules,
        &format!("    rules:\n{unknown}  - type: ConversionWebhook\n"),
    )?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let installed = ready(&cluster.client, "sample", PATIENCE).await?;
    let accepted = current(&installed, "Accepted", "True").context("it is not accepted")?;
    let message = text(accepted, "/message");
    anyhow::ensure!(
        text(accepted, "/reason") == "AcceptedWithWarnings"
            && message.contains("Deployment sample-operator (type: Recreate)")
            && message.contains("admission webhook vwidget.sample.windlass.dev is not tested"),
        "what is done otherwise is not said: {accepted}"
    );
    Ok(())
}
