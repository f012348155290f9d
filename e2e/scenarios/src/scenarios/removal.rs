//! Order and conditions of a removal.

use anyhow::Context;
use serde_json::json;

use super::traffic;
use crate::{
    sample,
    steps::{MUTATING, PATIENCE, VALIDATING, check, conditions, delete, get, gone, list, succeed, until},
    test_cluster::TestCluster,
};

/// A kind that no webhook of the sample matches: its writes must always succeed.
const CONFIG_MAPS: &str = "/api/v1/namespaces/traffic/configmaps";

pub(super) async fn webhooks_are_removed_before_their_servers(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let visits = traffic::start_visits(cluster).await?;
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    visits.finish().await?;
    anyhow::ensure!(
        list(&cluster.client, VALIDATING).await?.is_empty(),
        "a validating webhook configuration was left"
    );
    anyhow::ensure!(
        list(&cluster.client, MUTATING).await?.is_empty(),
        "a mutating webhook configuration was left"
    );
    gone(&cluster.client, sample::DEPLOYMENT).await?;
    gone(&cluster.client, sample::SERVICE).await?;
    succeed(
        &cluster.client,
        "POST",
        CONFIG_MAPS,
        Some(&json!({"metadata": {"name": "afterwards"}})),
    )
    .await?;
    Ok(())
}

/// Creates a widget, and returns its path.
pub(super) async fn create_widget(
    cluster: &TestCluster,
    namespace: &str,
    name: &str,
) -> anyhow::Result<String> {
    let object = json!({"apiVersion": "sample.windlass.dev/v1", "kind": "Widget",
        "metadata": {"name": name}, "spec": {"size": 3}});
    succeed(
        &cluster.client,
        "POST",
        &sample::widgets(namespace, "v1"),
        Some(&object),
    )
    .await?;
    Ok(format!("{}/{name}", sample::widgets(namespace, "v1")))
}

/// Waits until the conditions of the BundleDeployment contain all of these words.
pub(super) async fn wait_for_conditions(cluster: &TestCluster, words: &[&str]) -> anyhow::Result<()> {
    let path = sample::BUNDLE_DEPLOYMENT;
    until(
        &format!("the conditions contain {words:?}"),
        PATIENCE,
        async || {
            let deployed = get(&cluster.client, path).await?;
            let shown = conditions(
                &deployed.context("the BundleDeployment was deleted although the removal is blocked")?,
            );
            let all = words.iter().all(|word| shown.contains(word));
            Ok(check(all, || shown))
        },
    )
    .await
}

pub(super) async fn conversion_that_stored_objects_need_is_kept(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let widgets = |version| sample::widgets(traffic::NAMESPACE, version);
    let object = json!({"apiVersion": "sample.windlass.dev/v1", "kind": "Widget",
        "metadata": {"name": "kept"}, "spec": {"size": 3}});
    succeed(&cluster.client, "POST", &widgets("v1"), Some(&object)).await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "DELETE", path, None).await?;
    let words = crate::steps::until(
        "the conditions name the CRD that blocks the removal",
        crate::steps::PATIENCE,
        async || {
            let deployed = get(&cluster.client, path)
                .await?
                .context("the BundleDeployment was deleted although objects need the conversion")?;
            let words = crate::steps::conditions(&deployed);
            Ok(
                if words.contains("widgets.sample.windlass.dev") && words.contains("stored") {
                    Ok(words)
                } else {
                    Err(words)
                },
            )
        },
    )
    .await?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(
        crd["spec"]["conversion"]["strategy"] == "Webhook",
        "the conversion was removed, although: {words}"
    );
    let converted = get(&cluster.client, &format!("{}/kept", widgets("v1beta1"))).await?;
    anyhow::ensure!(
        converted.is_some_and(|object| object["spec"]["width"] == "3"),
        "the object is not converted"
    );
    // Without the object, the removal resumes automatically.
    succeed(
        &cluster.client,
        "DELETE",
        &format!("{}/kept", widgets("v1")),
        None,
    )
    .await?;
    gone(&cluster.client, path).await
}

pub(super) async fn stored_old_versions_are_rewritten_before_conversion_ends(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let kept = create_widget(cluster, traffic::NAMESPACE, "kept").await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    let crd = sample::DEFINITION;
    succeed(&cluster.client, "DELETE", path, None).await?;
    wait_for_conditions(
        cluster,
        &["ConversionInUse", "widgets.sample.windlass.dev", "DeleteCRDs"],
    )
    .await?;
    // Objects may still be stored as v1beta1, and must not be served unconverted.
    let stored = json!({"status": {"storedVersions": ["v1beta1", "v1"]}});
    succeed(&cluster.client, "PATCH", &format!("{crd}/status"), Some(&stored)).await?;
    let mut definition = get(&cluster.client, crd).await?.context("no CRD")?;
    for version in definition["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        version["served"] = version["storage"].clone();
    }
    let served = json!({"spec": {"versions": definition["spec"]["versions"]}});
    succeed(&cluster.client, "PATCH", crd, Some(&served)).await?;
    wait_for_conditions(cluster, &["ConversionInUse"]).await?;
    let converts = get(&cluster.client, crd).await?.context("no CRD")?;
    anyhow::ensure!(
        converts["spec"]["conversion"]["strategy"] == "Webhook",
        "{converts}"
    );
    // Rewrite the object and update `status.storedVersions`, as a storage version migration does.
    let object = get(&cluster.client, &kept)
        .await?
        .context("the object was deleted")?;
    succeed(&cluster.client, "PUT", &kept, Some(&object)).await?;
    let stored = json!({"status": {"storedVersions": ["v1"]}});
    succeed(&cluster.client, "PATCH", &format!("{crd}/status"), Some(&stored)).await?;
    gone(&cluster.client, path).await?;
    let definition = get(&cluster.client, crd).await?.context("no CRD")?;
    anyhow::ensure!(
        definition["spec"]["conversion"]["strategy"] == "None",
        "{definition}"
    );
    let object = get(&cluster.client, &kept)
        .await?
        .context("the object was deleted")?;
    anyhow::ensure!(object["spec"]["size"] == 3, "{object}");
    Ok(())
}

pub(super) async fn crds_are_deleted_only_on_request_and_with_every_object(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    create_widget(cluster, traffic::NAMESPACE, "free").await?;
    let held = create_widget(cluster, traffic::NAMESPACE, "held").await?;
    let hold = json!({"metadata": {"finalizers": ["sample.windlass.dev/hold"]}});
    succeed(&cluster.client, "PATCH", &held, Some(&hold)).await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    let crd = sample::DEFINITION;
    succeed(&cluster.client, "DELETE", path, None).await?;
    wait_for_conditions(cluster, &["ConversionInUse"]).await?;
    // Requested only now. The operator of the widgets runs until the last widget is deleted.
    let policy = json!({"spec": {"deletionPolicy": "DeleteCRDs"}});
    succeed(&cluster.client, "PATCH", path, Some(&policy)).await?;
    wait_for_conditions(
        cluster,
        &["DeletingCRDs", "traffic/held", "sample.windlass.dev/hold"],
    )
    .await?;
    let deployment = sample::DEPLOYMENT;
    let ready = &get(&cluster.client, deployment)
        .await?
        .context("the Deployment of the operator was deleted")?["status"]["readyReplicas"];
    anyhow::ensure!(ready.as_u64() > Some(0), "the operator is not running");
    let release = json!({"metadata": {"finalizers": null}});
    succeed(&cluster.client, "PATCH", &held, Some(&release)).await?;
    gone(&cluster.client, path).await?;
    anyhow::ensure!(get(&cluster.client, crd).await?.is_none(), "the CRD was left");
    anyhow::ensure!(
        get(&cluster.client, deployment).await?.is_none(),
        "the Deployment was left"
    );
    // Nothing blocks the next install.
    sample::install(cluster, "sample.v1").await?;
    let removed = cluster
        .command
        .succeed(&["uninstall", "sample", "--delete-crds"])
        .await?;
    anyhow::ensure!(!removed.contains("CustomResourceDefinition"), "{removed}");
    anyhow::ensure!(
        get(&cluster.client, crd).await?.is_none(),
        "the command did not delete the CRD"
    );
    Ok(())
}

pub(super) async fn a_deletion_waits_until_the_operator_runs_again(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    operator.kill().await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "DELETE", path, None).await?;
    // The webhooks are called and must be served until the operator removes them in order.
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    anyhow::ensure!(
        get(&cluster.client, path).await?.is_some(),
        "the BundleDeployment was deleted before its objects"
    );
    let _operator = cluster.operator.start()?;
    gone(&cluster.client, path).await?;
    for path in [VALIDATING, MUTATING] {
        anyhow::ensure!(
            list(&cluster.client, path).await?.is_empty(),
            "a webhook configuration was left in {path}"
        );
    }
    let crd = get(&cluster.client, sample::DEFINITION).await?;
    let crd = crd.context("the CRD was deleted")?;
    anyhow::ensure!(crd["spec"]["conversion"]["strategy"] == "None", "{crd}");
    Ok(())
}
