//! Removals that stored objects block, and paused BundleDeployments.

use anyhow::Context;
use serde_json::{Value, json};

use super::{removal, traffic};
use crate::{
    sample,
    steps::{MUTATING, PATIENCE, VALIDATING, check, conditions, delete, get, gone, list, succeed, until},
    test_cluster::TestCluster,
};

/// Waits until the conditions of the BundleDeployment contain all of these words.
async fn wait_for_conditions(cluster: &TestCluster, words: &[&str]) -> anyhow::Result<()> {
    let path = sample::BUNDLE_DEPLOYMENT;
    until(
        &format!("the conditions contain {words:?}"),
        PATIENCE,
        async || {
            let deployed = get(&cluster.client, path).await?.context("it was deleted")?;
            let said = conditions(&deployed);
            let all = words.iter().all(|word| said.contains(word));
            Ok(check(all, || said))
        },
    )
    .await
}

/// Returns the names of the served versions.
fn served_versions(crd: &Value) -> Vec<&str> {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    served.filter_map(|version| version["name"].as_str()).collect()
}

pub(super) async fn a_blocked_removal_deletes_nothing_until_it_may_rewrite_objects(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let kept = removal::create_widget(cluster, traffic::NAMESPACE, "kept").await?;
    let path = sample::BUNDLE_DEPLOYMENT;

    let refused = cluster.command.fail(&["uninstall", "sample"]).await?;
    for word in ["--keep-stored-version", "--delete-crds", sample::WIDGETS] {
        anyhow::ensure!(refused.contains(word), "{refused}");
    }
    let deployed = get(&cluster.client, path).await?.context("it was deleted")?;
    anyhow::ensure!(
        deployed["metadata"].get("deletionTimestamp").is_none(),
        "the command has deleted it"
    );

    // An admin deletes it with kubectl.
    succeed(&cluster.client, "DELETE", path, None).await?;
    wait_for_conditions(cluster, &["ConversionInUse", "KeepStoredVersion"]).await?;
    for configurations in [VALIDATING, MUTATING] {
        let left = list(&cluster.client, configurations).await?;
        anyhow::ensure!(
            !left.is_empty(),
            "the webhook configurations were deleted: {configurations}"
        );
    }
    let other = format!("{}/kept", sample::widgets(traffic::NAMESPACE, "v1beta1"));
    let converted = get(&cluster.client, &other).await?.context("no longer served")?;
    anyhow::ensure!(converted["spec"]["width"] == "3", "{converted}");

    // Some objects may be stored in another version. They are rewritten, and the removal completes.
    let stored = json!({"status": {"storedVersions": ["v1beta1", "v1"]}});
    let status = format!("{}/status", sample::DEFINITION);
    succeed(&cluster.client, "PATCH", &status, Some(&stored)).await?;
    let policy = json!({"spec": {"deletionPolicy": "KeepStoredVersion"}});
    succeed(&cluster.client, "PATCH", path, Some(&policy)).await?;
    gone(&cluster.client, path).await?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(crd["spec"]["conversion"]["strategy"] == "None", "{crd}");
    anyhow::ensure!(served_versions(&crd) == ["v1"], "{:?}", served_versions(&crd));
    anyhow::ensure!(crd["status"]["storedVersions"] == json!(["v1"]), "{crd}");
    let object = get(&cluster.client, &kept)
        .await?
        .context("the object was deleted")?;
    anyhow::ensure!(object["spec"]["size"] == 3, "{object}");
    Ok(())
}

pub(super) async fn a_kept_crd_without_objects_serves_one_version(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(crd["spec"]["conversion"]["strategy"] == "None", "{crd}");
    anyhow::ensure!(served_versions(&crd) == ["v1"], "{:?}", served_versions(&crd));
    // A new install serves all versions again.
    sample::install(cluster, "sample.v1").await?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(served_versions(&crd).len() > 1, "{:?}", served_versions(&crd));
    Ok(())
}

pub(super) async fn a_paused_bundle_deployment_repairs_only_its_conversion(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    let pause = |value: Value| json!({"metadata": {"annotations": {"windlass.dev/paused": value}}});
    succeed(&cluster.client, "PATCH", path, Some(&pause(json!("hot fix")))).await?;
    wait_for_conditions(cluster, &["Paused", "hot fix"]).await?;
    let shown = cluster.command.succeed(&["status"]).await?;
    anyhow::ensure!(shown.contains("Paused"), "{shown}");

    let config = "/api/v1/namespaces/sample-system/configmaps/sample-operator-config";
    let edited = json!({"data": {"color": "green"}});
    succeed(&cluster.client, "PATCH", config, Some(&edited)).await?;

    // Only the conversion is repaired, which prevents data loss; other fields would have been repaired by
    // then.
    let before = sample::crd(cluster).await?["spec"]["conversion"].clone();
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    succeed(&cluster.client, "PATCH", sample::DEFINITION, Some(&none)).await?;
    until("the conversion is restored", PATIENCE, async || {
        let conversion = sample::crd(cluster).await?["spec"]["conversion"].clone();
        Ok(check(conversion == before, || conversion.to_string()))
    })
    .await?;
    let held = get(&cluster.client, config).await?.context("no ConfigMap")?;
    anyhow::ensure!(held["data"]["color"] == "green", "{held}");

    succeed(&cluster.client, "PATCH", path, Some(&pause(Value::Null))).await?;
    until("the edited ConfigMap is restored", PATIENCE, async || {
        let restored = get(&cluster.client, config).await?.context("no ConfigMap")?;
        Ok(check(restored["data"]["color"] == "blue", || {
            restored.to_string()
        }))
    })
    .await?;
    until("it is no longer paused", PATIENCE, async || {
        let deployed = get(&cluster.client, path).await?.context("it was deleted")?;
        let said = conditions(&deployed);
        Ok(check(!said.contains("Paused"), || said))
    })
    .await
}
