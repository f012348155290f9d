//! The namespace of an install is deleted first, with everything that serves its webhooks.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::{removal, traffic};
use crate::{
    sample,
    steps::{get, gone, ready, succeed, until},
    test_cluster::TestCluster,
};

/// The namespace of the install.
const SYSTEM: &str = "/api/v1/namespaces/sample-system";

/// How long a namespace may take to go, with pods that have a grace period.
const LONG: Duration = Duration::from_secs(120);

/// Waits until the namespace and the BundleDeployment are gone; the object at `kept` must have stayed as it was.
async fn both_go(cluster: &TestCluster, kept: &str) -> anyhow::Result<()> {
    until("the namespace is gone", LONG, async || {
        Ok(match get(&cluster.client, SYSTEM).await? {
            None => Ok(()),
            Some(there) => Err(there["status"].to_string()),
        })
    })
    .await?;
    gone(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    let object = get(&cluster.client, kept)
        .await?
        .context("the object outside is lost")?;
    anyhow::ensure!(object["spec"]["size"] == 3, "{object}");
    Ok(())
}

pub(super) async fn a_namespace_that_is_deleted_first_goes_and_no_object_outside_is_lost(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    // Its preferred version is not the one that is stored: whatever deletes all objects asks for a conversion.
    sample::install(cluster, "sample.v2").await?;
    traffic::namespace(cluster, traffic::NAMESPACE).await?;
    let kept = removal::widget(cluster, traffic::NAMESPACE, "kept").await?;
    removal::widget(cluster, "sample-system", "inside").await?;
    succeed(&cluster.client, "DELETE", SYSTEM, None).await?;
    // Wanted again: everything comes back by itself.
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let before = get(&cluster.client, SYSTEM).await?.as_ref().map(uid);
    until("the namespace is another one", LONG, async || {
        let now = get(&cluster.client, SYSTEM).await?;
        Ok(match now {
            Some(now) if Some(uid(&now)) != before => Ok(()),
            now => Err(format!("{:?}", now.map(|now| now["status"].to_string()))),
        })
    })
    .await?;
    ready(&cluster.client, "sample", LONG).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    let object = get(&cluster.client, &kept.replace("/v1/", "/v2/")).await?;
    anyhow::ensure!(
        object.is_some(),
        "the object outside is not served at its new version"
    );

    // No longer desired: the namespace first, then what installs into it.
    removal::widget(cluster, "sample-system", "inside").await?;
    succeed(&cluster.client, "DELETE", SYSTEM, None).await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "DELETE", path, None).await?;
    until("the namespace is gone", LONG, async || {
        Ok(match get(&cluster.client, SYSTEM).await? {
            None => Ok(()),
            Some(there) => Err(there["status"].to_string()),
        })
    })
    .await?;
    gone(&cluster.client, path).await?;
    let object = get(&cluster.client, &kept)
        .await?
        .context("the object outside is lost")?;
    anyhow::ensure!(object["spec"]["size"] == 3, "{object}");
    Ok(())
}

pub(super) async fn what_is_deleted_while_the_operator_is_down_goes_when_it_is_back(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v2").await?;
    traffic::namespace(cluster, traffic::NAMESPACE).await?;
    let kept = removal::widget(cluster, traffic::NAMESPACE, "kept").await?;
    removal::widget(cluster, "sample-system", "inside").await?;
    let held = removal::widget(cluster, "sample-system", "held").await?;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    succeed(&cluster.client, "PATCH", &held, Some(&hold)).await?;
    operator.kill().await?;
    succeed(&cluster.client, "DELETE", SYSTEM, None).await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "DELETE", path, None).await?;
    // Nobody converts any more, and nobody is there yet to say so.
    gone(&cluster.client, sample::DEPLOYMENT).await?;
    let _operator = cluster.operator.start()?;
    // Who holds an object learns where it can be reached.
    removal::says(
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
    both_go(cluster, &kept).await
}
