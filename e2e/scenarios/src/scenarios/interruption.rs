//! Pods that cannot run next to those of the previous revision, and warnings about settings that an install
//! overrides.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;

use crate::{
    request::text,
    sample,
    steps::{BUNDLE_DEPLOYMENTS, PATIENCE, bundle_deployment, condition, current, get, gone, ready, succeed},
    test_cluster::TestCluster,
};

/// Writes a sample whose pods use a host port into the bundle folder.
fn bundle_with_host_port(cluster: &TestCluster, base: &str) -> anyhow::Result<PathBuf> {
    let bundle = cluster.bundle(base)?;
    add_host_port(cluster, &bundle)?;
    Ok(bundle)
}

/// Adds a host port to the pods of a sample.
fn add_host_port(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<()> {
    let port = "                  containerPort: 9443\n";
    cluster.edit(bundle, port, &format!("{port}                  hostPort: 9443\n"))
}

/// Renames the Deployment of a sample.
fn rename_deployment(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<()> {
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

/// Adds a label to the pod selector of a sample.
fn add_selector_label(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<()> {
    let label = "app.kubernetes.io/name: sample-operator\n";
    for (above, indent) in [("matchLabels:\n", 14), ("labels:\n", 16)] {
        let line = format!("{above}{}{label}", " ".repeat(indent));
        let more = format!("{line}{}control-plane: controller-manager\n", " ".repeat(indent));
        cluster.edit(bundle, &line, &more)?;
    }
    Ok(())
}

pub(super) async fn pods_with_a_host_port_are_interrupted_only_when_allowed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    bundle_with_host_port(cluster, "sample.v1")?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;

    rename_deployment(cluster, &bundle_with_host_port(cluster, "sample.v2")?)?;
    sample::set_source(cluster, "sample.v2").await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    let refused = condition(&cluster.client, path, "Accepted", "False", PATIENCE).await?;
    let accepted = current(&refused, "Accepted", "False").context("no condition Accepted")?;
    anyhow::ensure!(
        text(accepted, "/reason") == "UpgradeInterrupts"
            && text(accepted, "/message").contains("those of Deployment sample-system/sample-operator"),
        "the rejection is {accepted}"
    );

    let allowed = json!({"spec": {"upgrade": {"allowInterruption": true}}});
    succeed(&cluster.client, "PATCH", path, Some(&allowed)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    gone(&cluster.client, sample::DEPLOYMENT).await?;

    // The same with a changed selector. It is immutable, so the Deployment is deleted with its pods.
    let newest = cluster.add_bundle(&sample::bundle("sample.v2"), "selects-more")?;
    add_host_port(cluster, &newest)?;
    rename_deployment(cluster, &newest)?;
    add_selector_label(cluster, &newest)?;
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

pub(super) async fn overridden_settings_and_untested_webhooks_are_reported(
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
        "the warnings are missing: {accepted}"
    );
    Ok(())
}
