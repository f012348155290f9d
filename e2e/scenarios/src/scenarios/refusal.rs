//! Bundles that are refused before anything is written.

use anyhow::Context;
use serde_json::json;

use super::traffic;
use crate::{
    sample,
    steps::{self, BUNDLE_DEPLOYMENTS, PATIENCE, conditions, get, succeed},
    test_cluster::TestCluster,
};

/// Creates a BundleDeployment that must be refused, and returns its conditions as text.
async fn wait_for_refusal(cluster: &TestCluster, object: &serde_json::Value) -> anyhow::Result<String> {
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(object)).await?;
    let name = crate::request::text(object, "/metadata/name");
    let path = format!("{BUNDLE_DEPLOYMENTS}/{name}");
    let object = steps::condition(&cluster.client, &path, "Accepted", "False", PATIENCE).await?;
    Ok(conditions(&object))
}

pub(super) async fn a_broken_bundle_is_refused_before_anything_is_written(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let bundle = cluster.bundle("sample.v1")?;
    cluster.edit(
        &bundle,
        "deploymentName: sample-operator",
        "deploymentName: no-such-deployment",
    )?;
    let words = wait_for_refusal(
        cluster,
        &steps::bundle_deployment("broken", "broken-system", "sample.v1"),
    )
    .await?;
    anyhow::ensure!(
        words.contains("references non-existent deployment 'no-such-deployment'"),
        "{words}"
    );
    for path in ["/api/v1/namespaces/broken-system", sample::DEFINITION] {
        anyhow::ensure!(get(&cluster.client, path).await?.is_none(), "{path} was written");
    }
    Ok(())
}

pub(super) async fn a_foreign_object_is_not_adopted(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    traffic::create_namespace(cluster, "sample-system").await?;
    let path = "/api/v1/namespaces/sample-system/serviceaccounts";
    let account = json!({"metadata": {"name": "sample-operator", "labels": {"owner": "team-a"}}});
    succeed(&cluster.client, "POST", path, Some(&account)).await?;
    // An upgrade would need this name.
    let services = "/api/v1/namespaces/sample-system/services";
    let service =
        json!({"metadata": {"name": "sample-operator-service-green"}, "spec": {"ports": [{"port": 443}]}});
    succeed(&cluster.client, "POST", services, Some(&service)).await?;
    cluster.bundle("sample.v1")?;
    let words = wait_for_refusal(
        cluster,
        &steps::bundle_deployment("sample", "sample-system", "sample.v1"),
    )
    .await?;
    for object in [
        "ServiceAccount sample-system/sample-operator",
        "Service sample-system/sample-operator-service-green",
    ] {
        anyhow::ensure!(
            words.contains(object),
            "the message does not name {object}: {words}"
        );
    }
    let after = get(&cluster.client, &format!("{path}/sample-operator"))
        .await?
        .context("it was deleted")?;
    anyhow::ensure!(
        after["metadata"]["labels"] == json!({"owner": "team-a"}),
        "it was changed: {after}"
    );
    let crd = get(&cluster.client, sample::DEFINITION).await?;
    anyhow::ensure!(crd.is_none(), "something was written before the refusal");
    Ok(())
}

pub(super) async fn an_install_mode_that_is_not_supported_is_refused(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    cluster.bundle("sample.v1")?;
    let mut object = steps::bundle_deployment("sample", "sample-system", "sample.v1");
    object["spec"]["watchNamespaces"] = json!(["elsewhere"]);
    let words = wait_for_refusal(cluster, &object).await?;
    anyhow::ensure!(words.contains("invalid target namespaces [elsewhere]"), "{words}");
    Ok(())
}
