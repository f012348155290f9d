//! Upgrades to bundles whose CustomResourceDefinitions break clients or stored objects.

use anyhow::Context;
use serde_json::{Value, json};

use super::{traffic, upgrade};
use crate::{
    request::text,
    sample::{self, WIDGETS},
    steps::{self, BUNDLE_DEPLOYMENTS, CRDS, PATIENCE, check, get, install, ready, succeed},
    test_cluster::TestCluster,
};

/// Removes the field `^.status.phase` from both versions, and a color.
fn unsafe_bundle(cluster: &TestCluster) -> anyhow::Result<()> {
    let bundle = cluster.add_bundle(&crate::sample::bundle("sample.v1"), "unsafe")?;
    cluster.edit(&bundle, "enum: [blue, green, red]", "enum: [blue, green]")?;
    cluster.edit(&bundle, "              phase:", "              stage:")
}

/// Changes the spec, waits until the upgrade is rejected, and returns the message.
async fn wait_until_rejected(cluster: &TestCluster, spec: &Value) -> anyhow::Result<String> {
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "PATCH", path, Some(&json!({"spec": spec}))).await?;
    let object = steps::condition(&cluster.client, path, "Accepted", "False", PATIENCE).await?;
    let accepted = steps::current(&object, "Accepted", "False").context("no condition Accepted")?;
    anyhow::ensure!(accepted["reason"] == "UnsafeCrdUpgrade", "{accepted}");
    Ok(text(accepted, "/message").to_owned())
}

async fn written_fields(cluster: &TestCluster) -> anyhow::Result<Vec<Value>> {
    let mut versions = Vec::new();
    for path in [sample::DEFINITION, sample::DEPLOYMENT] {
        let object = get(&cluster.client, path)
            .await?
            .context("an object was deleted")?;
        versions.push(object["spec"].clone());
        versions.push(object["metadata"]["annotations"].clone());
    }
    Ok(versions)
}

pub(super) async fn an_unsafe_crd_change_is_rejected_until_it_is_allowed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let before = written_fields(cluster).await?;

    unsafe_bundle(cluster)?;
    let message = wait_until_rejected(cluster, &json!({"source": {"directory": {"path": "unsafe"}}})).await?;
    for version in ["v1", "v1beta1"] {
        for finding in [
            "^.spec.color enum: allowed enum values removed : [\"red\"]".to_owned(),
            format!("^.status.phase existingFieldRemoval: removed field : {version}.^.status.phase"),
        ] {
            let line = format!("{WIDGETS} {version} {finding}");
            anyhow::ensure!(
                message.contains(&line),
                "the message does not contain {line}: {message}"
            );
        }
    }
    anyhow::ensure!(written_fields(cluster).await? == before, "objects were written");

    // An exception for one change does not allow the other.
    let field = json!({"crd": WIDGETS, "field": "^.status", "enforcement": "None"});
    let message = wait_until_rejected(cluster, &json!({"crdUpgradeExceptions": [field]})).await?;
    anyhow::ensure!(
        message.contains("enum") && !message.contains("existingFieldRemoval"),
        "{message}"
    );
    anyhow::ensure!(written_fields(cluster).await? == before, "objects were written");

    let rule = json!({"rule": "enum", "enforcement": "Warn"});
    let patch = json!({"spec": {"crdUpgradeExceptions": [field, rule]}});
    let path = sample::BUNDLE_DEPLOYMENT;
    succeed(&cluster.client, "PATCH", path, Some(&patch)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let crd = sample::crd(cluster).await?;
    let properties = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    anyhow::ensure!(
        properties["spec"]["properties"]["color"]["enum"] == json!(["blue", "green"]),
        "the change was not made: {properties}"
    );
    wait_for_warning(cluster).await
}

/// The collection of v1 widgets that scenarios write to.
fn widgets() -> String {
    sample::widgets(traffic::NAMESPACE, "v1")
}

/// Creates a widget with these fields.
async fn create(cluster: &TestCluster, name: &str, spec: &Value) -> anyhow::Result<()> {
    let widget = json!({"apiVersion": format!("{}/v1", sample::GROUP), "kind": "Widget", "metadata": {"name": name},
        "spec": spec});
    succeed(&cluster.client, "POST", &widgets(), Some(&widget)).await?;
    Ok(())
}

async fn patch_widget(cluster: &TestCluster, name: &str, spec: &Value) -> anyhow::Result<()> {
    let path = format!("{}/{name}", widgets());
    succeed(&cluster.client, "PATCH", &path, Some(&json!({"spec": spec}))).await?;
    Ok(())
}

/// Returns the schema of `^.spec` in v1.
async fn spec_of_v1(cluster: &TestCluster) -> anyhow::Result<Value> {
    let crd = get(&cluster.client, &format!("{CRDS}/{WIDGETS}"))
        .await?
        .context("no CRD")?;
    let versions = crd["spec"]["versions"].as_array().context("no versions")?;
    let v1 = versions
        .iter()
        .find(|version| version["name"] == "v1")
        .context("no v1")?;
    Ok(v1["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].clone())
}

/// Writes a bundle that allows sizes up to 99, and returns a spec that installs it.
fn tighter_bundle(cluster: &TestCluster) -> anyhow::Result<Value> {
    let tighter = cluster.add_bundle(&sample::bundle("sample.v1"), "tighter")?;
    cluster.edit(
        &tighter,
        "type: integer",
        "type: integer\n                maximum: 99",
    )?;
    let rule = json!({"rule": "maximum", "enforcement": "Warn"});
    Ok(json!({"source": {"directory": {"path": "tighter"}}, "crdUpgradeExceptions": [rule]}))
}

pub(super) async fn an_object_that_violates_a_new_schema_blocks_the_upgrade(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(
        &cluster.client,
        "sample",
        "sample-system",
        &cluster.bundle("sample.v1")?,
    )
    .await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    create(cluster, "small", &json!({"size": 1})).await?;
    create(cluster, "tall", &json!({"size": 100})).await?;
    let before = written_fields(cluster).await?;

    let message = wait_until_rejected(cluster, &tighter_bundle(cluster)?).await?;
    let line = format!(
        "{WIDGETS} v1 ^.spec.size storedObjects: 1 of 2 objects would become invalid: traffic/tall (spec.size: "
    );
    anyhow::ensure!(
        message.contains(&line),
        "the message does not contain {line}: {message}"
    );
    anyhow::ensure!(
        !message.contains("traffic/small") && !message.contains(" maximum: "),
        "{message}"
    );
    anyhow::ensure!(written_fields(cluster).await? == before, "objects were written");

    patch_widget(cluster, "tall", &json!({"size": 99})).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let spec = spec_of_v1(cluster).await?;
    anyhow::ensure!(spec["size"]["maximum"] == 99, "the change was not made: {spec}");
    Ok(())
}

pub(super) async fn unreadable_objects_block_the_upgrade(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(
        &cluster.client,
        "sample",
        "sample-system",
        &cluster.bundle("sample.v1")?,
    )
    .await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    create(cluster, "tall", &json!({"size": 100})).await?;
    let before = written_fields(cluster).await?;

    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/windlass";
    let rules = get(&cluster.client, role).await?.context("no ClusterRole")?["rules"].clone();
    let all = rules.as_array().context("no rules")?;
    let less: Vec<_> = all
        .iter()
        .filter(|rule| rule["resources"] != json!(["*"]))
        .collect();
    anyhow::ensure!(less.len() < all.len(), "no rule covers all resources");
    succeed(&cluster.client, "PATCH", role, Some(&json!({"rules": less}))).await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
    let spec = json!({"spec": tighter_bundle(cluster)?});
    succeed(&cluster.client, "PATCH", &path, Some(&spec)).await?;
    upgrade::wait_until_stopped(cluster, "StoredObjectsUnread", "cannot list resource").await?;
    anyhow::ensure!(written_fields(cluster).await? == before, "objects were written");

    succeed(&cluster.client, "PATCH", role, Some(&json!({"rules": rules}))).await?;
    upgrade::wait_until_stopped(cluster, "UnsafeCrdUpgrade", "traffic/tall").await?;
    anyhow::ensure!(written_fields(cluster).await? == before, "objects were written");
    Ok(())
}

pub(super) async fn a_failed_upgrade_removes_new_fields_unless_objects_use_them(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(
        &cluster.client,
        "sample",
        "sample-system",
        &cluster.bundle("sample.v1")?,
    )
    .await?;
    let before = spec_of_v1(cluster).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;

    let broken = cluster.add_bundle(&sample::bundle("sample.v2"), "broken")?;
    let image = format!("image: {}:v2", sample::IMAGE);
    let crashing = format!("{image}\n                args: [--fault=crash]");
    cluster.edit(&broken, &image, &crashing)?;
    let size = "\n              size:\n";
    let and_note = format!("\n              note:\n                type: string{size}");
    cluster.edit(&broken, size, &and_note)?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
    let broken = json!({"spec": {
        "source": {"directory": {"path": "broken"}}, "config": {"windlass": {"canary": false}}}});
    succeed(&cluster.client, "PATCH", &path, Some(&broken)).await?;
    upgrade::wait_until_stopped(cluster, "RollingOut", "is crashing").await?;
    load.at_least(50).await?;
    create(cluster, "noted", &json!({"size": 1, "note": "kept"})).await?;

    let back = json!({"source": {"directory": {"path": "sample.v1"}}});
    let message = wait_until_rejected(cluster, &back).await?;
    anyhow::ensure!(
        message.contains("v1 ^.spec.note storedObjects: 1 of ")
            && message.contains(" objects would lose the value of this field: traffic/noted (spec.note)")
            && !message.contains("existingFieldRemoval"),
        "{message}"
    );
    let noted = get(&cluster.client, &format!("{}/noted", widgets())).await?;
    anyhow::ensure!(
        noted.is_some_and(|widget| widget["spec"]["note"] == "kept"),
        "the value of the note is lost"
    );
    load.at_least(50).await?;

    patch_widget(cluster, "noted", &json!({"note": null})).await?;
    let settled = ready(&cluster.client, "sample", PATIENCE).await?;
    anyhow::ensure!(
        settled["status"]["next"].is_null(),
        "the install continues: {}",
        settled["status"]["next"]
    );
    anyhow::ensure!(
        spec_of_v1(cluster).await? == before,
        "the schema was not restored"
    );
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Waits until an event reports the change that causes only a warning.
async fn wait_for_warning(cluster: &TestCluster) -> anyhow::Result<()> {
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    steps::until("an event reports the change", PATIENCE, async || {
        let events = steps::list(&cluster.client, path).await?;
        let warnings = events
            .iter()
            .filter(|event| event["reason"] == "CrdUpgradeWarnings");
        let notes: Vec<_> = warnings.map(|event| text(event, "/note")).collect();
        let is_told = |note: &&str| note.contains("enum") && note.contains("(warning)");
        Ok(check(notes.iter().any(is_told), || format!("{notes:?}")))
    })
    .await
}
