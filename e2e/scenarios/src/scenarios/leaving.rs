//! Leaving, and holding still: a removal that could not end takes nothing away, one that is told to rewrites what is in
//! its way, and what is paused is left to whoever paused it.

use anyhow::Context;
use serde_json::{Value, json};

use super::{removal, traffic};
use crate::{
    sample,
    steps::{MUTATING, PATIENCE, VALIDATING, check, conditions, delete, get, gone, list, succeed, until},
    test_cluster::TestCluster,
};

/// Waits until the BundleDeployment says all of these words.
async fn says(cluster: &TestCluster, words: &[&str]) -> anyhow::Result<()> {
    let path = sample::BUNDLE_DEPLOYMENT;
    until(
        &format!("the BundleDeployment says {words:?}"),
        PATIENCE,
        async || {
            let deployed = get(&cluster.client, path).await?.context("it is gone")?;
            let said = conditions(&deployed);
            let all = words.iter().all(|word| said.contains(word));
            Ok(check(all, || said))
        },
    )
    .await
}

/// The names of the versions that the CRD serves.
fn served(crd: &Value) -> Vec<&str> {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    served.filter_map(|version| version["name"].as_str()).collect()
}

pub(super) async fn a_removal_that_could_not_end_takes_nothing_away_until_it_may_rewrite(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    traffic::namespace(cluster, traffic::NAMESPACE).await?;
    let kept = removal::widget(cluster, traffic::NAMESPACE, "kept").await?;
    let path = sample::BUNDLE_DEPLOYMENT;

    let refused = cluster.command.fail(&["uninstall", "sample"]).await?;
    for word in ["--keep-stored-version", "--delete-crds", sample::WIDGETS] {
        anyhow::ensure!(refused.contains(word), "{refused}");
    }
    let deployed = get(&cluster.client, path).await?.context("it is gone")?;
    anyhow::ensure!(
        deployed["metadata"].get("deletionTimestamp").is_none(),
        "the command has deleted it"
    );

    // Somebody deletes it all the same.
    succeed(&cluster.client, "DELETE", path, None).await?;
    says(cluster, &["ConversionInUse", "KeepStoredVersion"]).await?;
    for configurations in [VALIDATING, MUTATING] {
        let left = list(&cluster.client, configurations).await?;
        anyhow::ensure!(
            !left.is_empty(),
            "a configuration was taken away: {configurations}"
        );
    }
    let other = format!("{}/kept", sample::widgets(traffic::NAMESPACE, "v1beta1"));
    let converted = get(&cluster.client, &other).await?.context("no longer served")?;
    anyhow::ensure!(converted["spec"]["width"] == "3", "{converted}");

    // Some objects may be stored in another version; they are rewritten, and the removal ends by itself.
    let stored = json!({"status": {"storedVersions": ["v1beta1", "v1"]}});
    let status = format!("{}/status", sample::DEFINITION);
    succeed(&cluster.client, "PATCH", &status, Some(&stored)).await?;
    let policy = json!({"spec": {"deletionPolicy": "KeepStoredVersion"}});
    succeed(&cluster.client, "PATCH", path, Some(&policy)).await?;
    gone(&cluster.client, path).await?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(crd["spec"]["conversion"]["strategy"] == "None", "{crd}");
    anyhow::ensure!(served(&crd) == ["v1"], "{:?}", served(&crd));
    anyhow::ensure!(crd["status"]["storedVersions"] == json!(["v1"]), "{crd}");
    let object = get(&cluster.client, &kept).await?.context("the object is gone")?;
    anyhow::ensure!(object["spec"]["size"] == 3, "{object}");
    Ok(())
}

pub(super) async fn an_empty_definition_that_stays_serves_one_version(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(crd["spec"]["conversion"]["strategy"] == "None", "{crd}");
    anyhow::ensure!(served(&crd) == ["v1"], "{:?}", served(&crd));
    // Whoever comes back serves everything again.
    sample::install(cluster, "sample.v1").await?;
    let crd = sample::crd(cluster).await?;
    anyhow::ensure!(served(&crd).len() > 1, "{:?}", served(&crd));
    Ok(())
}

pub(super) async fn what_is_paused_is_left_as_it_is_but_for_its_conversion(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    let pause = |value: Value| json!({"metadata": {"annotations": {"windlass.dev/paused": value}}});
    succeed(&cluster.client, "PATCH", path, Some(&pause(json!("hot fix")))).await?;
    says(cluster, &["Paused", "hot fix"]).await?;
    let shown = cluster.command.succeed(&["status"]).await?;
    anyhow::ensure!(shown.contains("Paused"), "{shown}");

    let config = "/api/v1/namespaces/sample-system/configmaps/sample-operator-config";
    let edited = json!({"data": {"color": "green"}});
    succeed(&cluster.client, "PATCH", config, Some(&edited)).await?;

    // What would lose data comes back, and by then the rest would have, too.
    let before = sample::crd(cluster).await?["spec"]["conversion"].clone();
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    succeed(&cluster.client, "PATCH", sample::DEFINITION, Some(&none)).await?;
    until("the conversion is put back", PATIENCE, async || {
        let conversion = sample::crd(cluster).await?["spec"]["conversion"].clone();
        Ok(check(conversion == before, || conversion.to_string()))
    })
    .await?;
    let held = get(&cluster.client, config).await?.context("no ConfigMap")?;
    anyhow::ensure!(held["data"]["color"] == "green", "{held}");

    succeed(&cluster.client, "PATCH", path, Some(&pause(Value::Null))).await?;
    until("what was edited is put back", PATIENCE, async || {
        let restored = get(&cluster.client, config).await?.context("no ConfigMap")?;
        Ok(check(restored["data"]["color"] == "blue", || {
            restored.to_string()
        }))
    })
    .await?;
    until("it is not paused any more", PATIENCE, async || {
        let deployed = get(&cluster.client, path).await?.context("it is gone")?;
        let said = conditions(&deployed);
        Ok(check(!said.contains("Paused"), || said))
    })
    .await
}
