//! Revision records: their bundle replaces a deleted source, and they allow a rollback.

use std::fs;

use anyhow::Context;
use serde_json::json;

use super::{installed_revision, traffic, upgrade};
use crate::{
    command::argument,
    operator,
    request::{self, text},
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, PATIENCE, bundle_deployment, check, conditions, current, get, list, ready,
        succeed, until,
    },
    test_cluster::TestCluster,
};

pub(super) async fn a_foreign_config_map_is_not_overwritten_by_a_revision_record(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let theirs = json!({"metadata": {"name": "sample-revision-1"}, "data": {"settings": "theirs"}});
    succeed(&cluster.client, "POST", &config_maps(""), Some(&theirs)).await?;
    cluster.bundle("sample.v1")?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    upgrade::wait_until_stopped(
        cluster,
        "RecordRefused",
        "ConfigMap windlass-system/sample-revision-1 exists and was not created by Windlass: rename or delete it",
    )
    .await?;
    let path = config_maps("/sample-revision-1");
    let left = get(&cluster.client, &path).await?.context("it was deleted")?;
    anyhow::ensure!(
        left["data"] == theirs["data"] && left["metadata"]["ownerReferences"].is_null(),
        "it was overwritten: {left}"
    );
    succeed(&cluster.client, "DELETE", &path, None).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let record = get(&cluster.client, &path).await?.context("no record")?;
    anyhow::ensure!(
        record["metadata"]["labels"]["windlass.dev/revision-of"] == "sample",
        "{record}"
    );
    Ok(())
}

pub(super) async fn an_install_survives_the_deletion_of_its_source(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let running = cluster.operator.start()?;
    install(cluster, "sample.v1").await?;
    let deployment = installed_revision::deployment(cluster).await?;
    let source = deployment["spec"]["source"]["configMaps"].as_array();
    for part in source.context("no ConfigMaps")? {
        let path = config_maps("");
        succeed(
            &cluster.client,
            "DELETE",
            &format!("{path}/{}", text(part, "/name")),
            None,
        )
        .await?;
    }
    installed_revision::delete_each_object(cluster).await?;

    // A directory is not recreated. A restarted operator has no copy of the bundle in memory, but finds it in
    // the record.
    cluster.bundle("sample.v1")?;
    let directory = json!({"spec": {"source": {"directory": {"path": "sample.v1"}, "configMaps": null}}});
    succeed(
        &cluster.client,
        "PATCH",
        sample::BUNDLE_DEPLOYMENT,
        Some(&directory),
    )
    .await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    fs::remove_dir_all(cluster.operator.bundle_dir.join("sample.v1"))?;
    running.kill().await?;
    let _running = cluster.operator.start()?;
    installed_revision::delete_each_object(cluster).await?;
    until("the status names the record that is used", PATIENCE, async || {
        let object = installed_revision::deployment(cluster).await?;
        let words = conditions(&object);
        let is_shown = words.contains("Accepted=True SourceInvalid")
            && words.contains("continuing from the record of revision 1")
            && current(&object, "Ready", "True").is_some();
        Ok(check(is_shown, || words))
    })
    .await
}

pub(super) async fn a_pinned_source_installs_no_other_bundle(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let installed = sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    let digest = text(&installed, "/status/installed/digest").to_owned();
    let pinned = json!({"spec": {"source": {"digest": digest}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&pinned)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let folder = cluster.operator.bundle_dir.join("sample.v1");
    cluster.edit(
        &folder,
        "capabilities: Basic Install",
        "capabilities: Full Lifecycle",
    )?;
    let other = json!({"metadata": {"annotations": {"look": "again"}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&other)).await?;
    upgrade::wait_until_stopped(
        cluster,
        "DigestMismatch",
        &format!("spec.source.digest pins {digest}"),
    )
    .await?;
    installed_revision::check_kept(cluster, &load, "DigestMismatch").await?;
    load.stop().await;
    Ok(())
}

pub(super) async fn the_command_rolls_back_to_an_earlier_revision(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(cluster, "sample.v1").await?;
    let error = cluster.command.fail(&["rollback", "sample"]).await?;
    anyhow::ensure!(
        error.contains("has no revision before the installed one, 1"),
        "{error}"
    );
    let load = traffic::start_with_newest(cluster).await?;
    load.at_least(50).await?;
    install(cluster, "sample.v2").await?;
    load.at_least(50).await?;
    let error = cluster.command.fail(&["rollback", "sample", "--to", "7"]).await?;
    anyhow::ensure!(error.contains("has no revision 7; available: 1, 2"), "{error}");

    // Back to the older bundle, and forward again.
    let back = cluster.command.succeed(&["rollback", "sample"]).await?;
    anyhow::ensure!(
        back.starts_with("sample.v1 is installed in sample-system"),
        "{back}"
    );
    load.at_least(50).await?;
    let forth = cluster
        .command
        .succeed(&["rollback", "sample", "--to", "2"])
        .await?;
    anyhow::ensure!(
        forth.starts_with("sample.v2 is installed in sample-system"),
        "{forth}"
    );
    load.at_least(50).await?;
    let again = cluster.command.succeed(&["rollback", "sample"]).await?;
    anyhow::ensure!(
        again.starts_with("sample.v1 is installed in sample-system"),
        "{again}"
    );
    load.at_least(50).await?;
    let report = traffic::finish(load).await?;
    report.check_served(traffic::NEWEST, &[false, true, false, true, false])?;

    // The records of the installed revision and the previous three remain, and each bundle is stored once.
    let history = cluster.command.found(&["history", "sample"]).await?;
    let listed: Vec<_> = history
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            format!(
                "{} {} {}",
                entry["revision"],
                text(entry, "/name"),
                text(entry, "/state")
            )
        })
        .collect();
    anyhow::ensure!(
        listed
            == [
                "5 sample.v1 Installed",
                "4 sample.v2 Earlier",
                "3 sample.v1 Earlier",
                "2 sample.v2 Earlier"
            ],
        "{listed:?}"
    );
    until("the first record is deleted", PATIENCE, async || {
        let records = list(
            &cluster.client,
            &config_maps("?labelSelector=windlass.dev%2Frevision-of%3Dsample"),
        )
        .await?;
        Ok(check(records.len() == 4, || format!("{} records", records.len())))
    })
    .await?;
    let stored = list(
        &cluster.client,
        &config_maps("?labelSelector=windlass.dev%2Fbundle-source%3Dsample"),
    )
    .await?;
    anyhow::ensure!(stored.len() == 2, "{} ConfigMaps with bundles", stored.len());
    // After a rollback, an upgrade is possible.
    install(cluster, "sample.v2").await?;
    cluster.command.succeed(&["uninstall", "sample"]).await?;
    until("all records are deleted", PATIENCE, async || {
        let left = list(
            &cluster.client,
            &config_maps("?labelSelector=windlass.dev%2Frevision-of"),
        )
        .await?;
        Ok(check(left.is_empty(), || format!("{} records", left.len())))
    })
    .await
}

fn config_maps(query: &str) -> String {
    format!("/api/v1/namespaces/{}/configmaps{query}", operator::NAMESPACE)
}

async fn install(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    let bundle = sample::bundle(name);
    let arguments = [
        "install",
        argument(&bundle)?,
        "--namespace",
        "sample-system",
        "--name",
        "sample",
    ];
    cluster.command.succeed(&arguments).await?;
    Ok(())
}

/// Field managers keep the version of their last write, to which the API server converts at each server-side
/// apply.
pub(super) async fn objects_can_be_applied_at_old_versions_after_a_rollback(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    install(cluster, "sample.v1").await?;
    install(cluster, "sample.v2").await?;
    let apply = async |version: &str, manager: &str| {
        let path = format!("{}/applied", sample::widgets("default", version));
        let mut widget = sample::widget(version);
        widget["metadata"]["name"] = json!("applied");
        widget["metadata"]["labels"] = json!({manager: version});
        request::apply(client, &path, manager, false, &widget).await
    };
    for (version, manager) in [("v2", "newer"), ("v1", "older")] {
        let answer = apply(version, manager).await?;
        anyhow::ensure!([200, 201].contains(&answer.code), "before: {answer}");
    }
    cluster.command.succeed(&["rollback", "sample"]).await?;
    let answer = apply("v1", "older").await?;
    anyhow::ensure!(answer.code == 200, "after the rollback: {answer}");
    Ok(())
}
