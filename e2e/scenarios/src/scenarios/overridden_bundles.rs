//! Objects of bundles as override policies have them, whether or not anybody serves policies.

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

/// How long it is watched whether anything is written.
const IDLE: Duration = Duration::from_secs(10);

/// A policy for Deployments of the sample.
fn policy(name: &str, overriders: &Value) -> Value {
    json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": sample::NAMESPACE}],
            "overrideRules": [{"overriders": overriders}],
        },
    })
}

/// A policy by which the sample's image comes from a mirror.
fn mirror() -> Value {
    let image = json!({
        "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": format!("{}:v1", sample::MIRROR),
    });
    policy("mirror", &json!({"plaintext": [image]}))
}

async fn image(cluster: &TestCluster) -> anyhow::Result<String> {
    let deployment = get(&cluster.client, sample::DEPLOYMENT).await?;
    let deployment = deployment.context("no Deployment")?;
    Ok(text(&deployment, "/spec/template/spec/containers/0/image").to_owned())
}

/// Waits until the sample is ready with an image, as a revision.
async fn runs(cluster: &TestCluster, wanted: &str, revision: i64) -> anyhow::Result<()> {
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

async fn define(cluster: &TestCluster) -> anyhow::Result<()> {
    for crd in policies::definitions() {
        foreign::define(&cluster.client, &crd).await?;
    }
    Ok(())
}

pub(super) async fn a_bundle_comes_from_a_mirror_although_nobody_serves_policies(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    define(cluster).await?;
    succeed(client, "POST", POLICIES, Some(&mirror())).await?;
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
    runs(cluster, &mirrored, 1).await?;
    let object = condition(client, sample::BUNDLE_DEPLOYMENT, "Accepted", "True", PATIENCE).await?;
    anyhow::ensure!(
        conditions(&object).contains(overridden),
        "{}",
        conditions(&object)
    );

    idle::settled(&proxy).await?;
    let before = proxy.writes();
    tokio::time::sleep(IDLE).await;
    running.kill().await?;
    let _running = operator.start()?;
    sample::settled(cluster).await?;
    tokio::time::sleep(IDLE).await;
    anyhow::ensure!(
        proxy.writes() == before,
        "written while nothing changed: {:?}",
        proxy.log().last()
    );
    runs(cluster, &mirrored, 1).await
}

pub(super) async fn a_policy_changes_and_goes_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    define(cluster).await?;
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;

    succeed(client, "POST", POLICIES, Some(&mirror())).await?;
    runs(cluster, &format!("{}:v1", sample::MIRROR), 2).await?;
    load.at_least(50).await?;

    // One that fails keeps the next revision waiting, and nothing else.
    let path = format!("{POLICIES}/mirror");
    let broken = json!({"spec": {"overrideRules": [{"overriders": {"plaintext": [
        {"op": "replace", "path": "/metadata/name", "value": "other"},
    ]}}]}});
    succeed(client, "PATCH", &path, Some(&broken)).await?;
    let refused = condition(client, sample::BUNDLE_DEPLOYMENT, "Accepted", "False", PATIENCE).await?;
    let said = conditions(&refused);
    for words in [
        "PolicyFailed",
        "Deployment sample-system/sample-operator: ClusterOverridePolicy mirror: rule 0: plaintext: must not override metadata.name",
    ] {
        anyhow::ensure!(said.contains(words), "{said}");
    }
    anyhow::ensure!(
        image(cluster).await? == format!("{}:v1", sample::MIRROR),
        "what is installed was changed"
    );
    sample::rotate(cluster, "leaf").await?;

    // It goes, and so does what it overrode.
    delete(client, &path).await?;
    runs(cluster, &format!("{}:v1", sample::IMAGE), 3).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

pub(super) async fn who_serves_policies_finds_bundles_as_they_are_to_be(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _running = operator.start()?;
    let _served = policies::serve(cluster).await?;
    let labelled =
        json!({"template": {"type": "labels", "operation": "add", "path": "team", "value": {"string": "a"}}});
    policies::ready(cluster, "clusteroverridepolicies", &policy("labels", &labelled)).await?;
    policies::ready(cluster, "clusteroverridepolicies", &mirror()).await?;
    sample::install(cluster, "sample.v1").await?;
    runs(cluster, &format!("{}:v1", sample::MIRROR), 1).await?;
    let deployment = get(&cluster.client, sample::DEPLOYMENT)
        .await?
        .context("no Deployment")?;
    anyhow::ensure!(
        text(&deployment, "/metadata/labels/team") == "a",
        "not labelled: {deployment}"
    );
    idle::settled(&proxy).await?;
    let before = proxy.writes();
    tokio::time::sleep(IDLE).await;
    anyhow::ensure!(
        proxy.writes() == before,
        "written while nothing changed: {:?}",
        proxy.log().last()
    );
    Ok(())
}
