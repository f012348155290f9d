//! Override policies apply to objects of bundles, with and without a running policy server.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::{foreign, idle, policies, traffic};
use crate::{
    command::argument,
    request::text,
    sample,
    steps::{PATIENCE, check, condition, conditions, delete, get, ready, succeed, until},
    test_cluster::TestCluster,
};

const POLICIES: &str = "/apis/policy.kcloudlabs.io/v1alpha1/clusteroverridepolicies";

/// How long nothing may be written.
const IDLE: Duration = Duration::from_secs(10);

/// Returns a policy for Deployments of the sample.
fn deployment_policy(name: &str, overriders: &Value) -> Value {
    json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": sample::NAMESPACE}],
            "overrideRules": [{"overriders": overriders}],
        },
    })
}

/// Returns a policy that replaces the sample's image with that of a mirror.
fn mirror_policy() -> Value {
    let image = json!({
        "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": format!("{}:v1", sample::MIRROR),
    });
    deployment_policy("mirror", &json!({"plaintext": [image]}))
}

async fn image(cluster: &TestCluster) -> anyhow::Result<String> {
    let deployment = get(&cluster.client, sample::DEPLOYMENT).await?;
    let deployment = deployment.context("no Deployment")?;
    Ok(text(&deployment, "/spec/template/spec/containers/0/image").to_owned())
}

/// Waits until the sample is ready with this image in this revision.
async fn wait_for_image(cluster: &TestCluster, wanted: &str, revision: i64) -> anyhow::Result<()> {
    until(
        &format!("revision {revision} runs {wanted}"),
        PATIENCE,
        async || {
            let object = get(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
            let object = object.context("no BundleDeployment")?;
            let is_there = object["status"]["installed"]["revision"] == revision
                && object["status"].get("next").is_none_or(Value::is_null)
                && image(cluster).await? == wanted;
            Ok(check(is_there, || conditions(&object)))
        },
    )
    .await?;
    ready(&cluster.client, "sample", PATIENCE).await.map(drop)
}

async fn define_policies(cluster: &TestCluster) -> anyhow::Result<()> {
    for crd in policies::policy_crds() {
        foreign::define(&cluster.client, &crd).await?;
    }
    Ok(())
}

pub(super) async fn override_policies_apply_to_bundles_without_a_policy_server(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    define_policies(cluster).await?;
    succeed(client, "POST", POLICIES, Some(&mirror_policy())).await?;
    let bundle = sample::bundle("sample.v1");
    let dry_run = [
        "install",
        argument(&bundle)?,
        "--namespace",
        sample::NAMESPACE,
        "--name",
        "sample",
        "--dry-run",
    ];
    let shown = cluster.command.succeed(&dry_run).await?;
    let overridden = "ClusterOverridePolicy mirror overrides Deployment sample-system/sample-operator";
    anyhow::ensure!(
        shown.contains("Would be overridden by policies:") && shown.contains(overridden),
        "{shown}"
    );

    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let running = operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let mirrored = format!("{}:v1", sample::MIRROR);
    wait_for_image(cluster, &mirrored, 1).await?;
    let object = condition(client, sample::BUNDLE_DEPLOYMENT, "Accepted", "True", PATIENCE).await?;
    anyhow::ensure!(
        conditions(&object).contains(overridden),
        "{}",
        conditions(&object)
    );

    idle::wait_until_idle(&proxy).await?;
    let before = proxy.writes();
    tokio::time::sleep(IDLE).await;
    running.kill().await?;
    let _running = operator.start()?;
    sample::settled(cluster).await?;
    tokio::time::sleep(IDLE).await;
    anyhow::ensure!(
        proxy.writes() == before,
        "written although nothing changed: {:?}",
        proxy.log().last()
    );
    wait_for_image(cluster, &mirrored, 1).await
}

pub(super) async fn changing_and_deleting_an_override_policy_fails_no_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    define_policies(cluster).await?;
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;

    succeed(client, "POST", POLICIES, Some(&mirror_policy())).await?;
    wait_for_image(cluster, &format!("{}:v1", sample::MIRROR), 2).await?;
    load.at_least(50).await?;

    // A policy that fails stops the next revision only.
    let path = format!("{POLICIES}/mirror");
    let broken = json!({"spec": {"overrideRules": [{"overriders": {"plaintext": [
        {"op": "replace", "path": "/metadata/name", "value": "other"},
    ]}}]}});
    succeed(client, "PATCH", &path, Some(&broken)).await?;
    let refused = condition(client, sample::BUNDLE_DEPLOYMENT, "Accepted", "False", PATIENCE).await?;
    let status = conditions(&refused);
    for words in [
        "PolicyFailed",
        "Deployment sample-system/sample-operator: ClusterOverridePolicy mirror: rule 0: plaintext: must not override metadata.name",
    ] {
        anyhow::ensure!(status.contains(words), "{status}");
    }
    anyhow::ensure!(
        image(cluster).await? == format!("{}:v1", sample::MIRROR),
        "the installed Deployment was changed"
    );
    sample::rotate(cluster, "leaf").await?;

    // Deleting the policy reverts its changes.
    delete(client, &path).await?;
    wait_for_image(cluster, &format!("{}:v1", sample::IMAGE), 3).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

pub(super) async fn the_policy_server_agrees_with_overridden_bundle_objects(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _running = operator.start()?;
    let _served = policies::install_replica(cluster).await?;
    let labelled =
        json!({"template": {"type": "labels", "operation": "add", "path": "team", "value": {"string": "a"}}});
    policies::create_policy(
        cluster,
        "clusteroverridepolicies",
        &deployment_policy("labels", &labelled),
    )
    .await?;
    policies::create_policy(cluster, "clusteroverridepolicies", &mirror_policy()).await?;
    sample::install(cluster, "sample.v1").await?;
    wait_for_image(cluster, &format!("{}:v1", sample::MIRROR), 1).await?;
    let deployment = get(&cluster.client, sample::DEPLOYMENT)
        .await?
        .context("no Deployment")?;
    anyhow::ensure!(
        text(&deployment, "/metadata/labels/team") == "a",
        "the label is missing: {deployment}"
    );
    idle::wait_until_idle(&proxy).await?;
    let before = proxy.writes();
    tokio::time::sleep(IDLE).await;
    anyhow::ensure!(
        proxy.writes() == before,
        "written although nothing changed: {:?}",
        proxy.log().last()
    );
    Ok(())
}
