//! The namespace of an install, including its webhook servers, is deleted before the BundleDeployment.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::{removal, traffic};
use crate::{
    sample,
    steps::{get, gone, ready, succeed, until},
    test_cluster::TestCluster,
};

const SYSTEM: &str = "/api/v1/namespaces/sample-system";

/// The timeout for the deletion of a namespace whose pods have a grace period.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Waits until the namespace and the BundleDeployment are deleted; the object at `kept` must be unchanged.
async fn wait_for_removal(cluster: &TestCluster, kept: &str) -> anyhow::Result<()> {
    until("the namespace is deleted", TIMEOUT, async || {
        Ok(match get(&cluster.client, SYSTEM).await? {
            None => Ok(()),
            Some(live) => Err(live["status"].to_string()),
        })
    })
    .await?;
    gone(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    let object = get(&cluster.client, kept)
        .await?
        .context("the object in another namespace was deleted")?;
    anyhow::ensure!(object["spec"]["size"] == 3, "{object}");
    Ok(())
}

pub(super) async fn deleting_the_namespace_first_keeps_objects_in_other_namespaces(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    // The preferred version is not the storage version, so the namespace controller needs a conversion to
    // delete all objects.
    sample::install(cluster, "sample.v2").await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let kept = removal::create_widget(cluster, traffic::NAMESPACE, "kept").await?;
    removal::create_widget(cluster, "sample-system", "inside").await?;
    succeed(&cluster.client, "DELETE", SYSTEM, None).await?;
    // The BundleDeployment still exists, so the operator installs everything again.
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let before = get(&cluster.client, SYSTEM).await?.as_ref().map(uid);
    until("the namespace is recreated", TIMEOUT, async || {
        let now = get(&cluster.client, SYSTEM).await?;
        Ok(match now {
            Some(now) if Some(uid(&now)) != before => Ok(()),
            now => Err(format!("{:?}", now.map(|now| now["status"].to_string()))),
        })
    })
    .await?;
    ready(&cluster.client, "sample", TIMEOUT).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    let object = get(&cluster.client, &kept.replace("/v1/", "/v2/")).await?;
    anyhow::ensure!(
        object.is_some(),
        "the object in another namespace is not served at v2"
    );

    // Now both are deleted: first the namespace, then the BundleDeployment.
    removal::create_widget(cluster, "sample-system", "inside").await?;
    succeed(&cluster.client, "DELETE", SYSTEM, None).await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "DELETE", path, None).await?;
    until("the namespace is deleted", TIMEOUT, async || {
        Ok(match get(&cluster.client, SYSTEM).await? {
            None => Ok(()),
            Some(live) => Err(live["status"].to_string()),
        })
    })
    .await?;
    gone(&cluster.client, path).await?;
    let object = get(&cluster.client, &kept)
        .await?
        .context("the object in another namespace was deleted")?;
    anyhow::ensure!(object["spec"]["size"] == 3, "{object}");
    Ok(())
}

pub(super) async fn a_namespace_deleted_while_the_operator_is_down_is_cleaned_up_later(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v2").await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let kept = removal::create_widget(cluster, traffic::NAMESPACE, "kept").await?;
    removal::create_widget(cluster, "sample-system", "inside").await?;
    let held = removal::create_widget(cluster, "sample-system", "held").await?;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    succeed(&cluster.client, "PATCH", &held, Some(&hold)).await?;
    operator.kill().await?;
    succeed(&cluster.client, "DELETE", SYSTEM, None).await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "DELETE", path, None).await?;
    // No server converts objects now, and no operator removes the conversion.
    gone(&cluster.client, sample::DEPLOYMENT).await?;
    let _operator = cluster.operator.start()?;
    // The status names the objects that have finalizers, in a version that can be read without a conversion.
    removal::wait_for_conditions(
        cluster,
        &[
            "NamespaceTerminating",
            "widgets.v1.sample.windlass.dev",
            "example.com/hold",
        ],
    )
    .await?;
    let free = json!({"metadata": {"finalizers": null}});
    succeed(&cluster.client, "PATCH", &held, Some(&free)).await?;
    wait_for_removal(cluster, &kept).await
}
