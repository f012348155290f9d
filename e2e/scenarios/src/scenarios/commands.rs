//! The commands of the program, used on a cluster.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::traffic;
use crate::{
    command::{Command, argument},
    operator,
    proxy::{Cut, Proxy},
    sample::{self, CERTIFICATE},
    steps::{BUNDLE_DEPLOYMENTS, get, list, succeed},
    test_cluster::TestCluster,
};

const INSTALL: [&str; 4] = ["--namespace", "sample-system", "--name", "sample"];

pub(super) async fn the_command_installs_upgrades_and_uninstalls(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let installed = install(cluster, &sample::bundle("sample.v1")).await?;
    anyhow::ensure!(
        installed
            == "sample.v1 is installed in sample-system; armed: 1 conversion, 2 webhook configurations\n",
        "{installed}"
    );
    let first = bundle_config_maps(cluster).await?;
    anyhow::ensure!(!first.is_empty(), "no ConfigMap contains the bundle");
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;

    // Repeating the command changes nothing. Another bundle adds ConfigMaps, and the first ones stay for a
    // rollback.
    let path = sample::BUNDLE_DEPLOYMENT;
    let before = get(&cluster.client, path).await?.context("no BundleDeployment")?;
    install(cluster, &sample::bundle("sample.v1")).await?;
    let after = get(&cluster.client, path).await?.context("no BundleDeployment")?;
    anyhow::ensure!(
        before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
            && bundle_config_maps(cluster).await? == first,
        "repeating an install has written objects"
    );
    install(cluster, &sample::bundle("sample.v2")).await?;
    let second = bundle_config_maps(cluster).await?;
    anyhow::ensure!(
        second.len() == 2 * first.len() && first.iter().all(|part| second.contains(part)),
        "ConfigMaps before: {first:?}; after: {second:?}"
    );
    load.at_least(100).await?;

    cluster
        .command
        .succeed(&[
            "rotate",
            &format!("sample-system/{CERTIFICATE}"),
            "--ca",
            "--wait",
        ])
        .await?;
    check_views(cluster).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;

    let removed = cluster.command.succeed(&["uninstall", "sample"]).await?;
    anyhow::ensure!(
        removed.starts_with("BundleDeployment sample removed\n")
            && removed.contains("CustomResourceDefinition widgets.sample.windlass.dev"),
        "{removed}"
    );
    anyhow::ensure!(
        get(&cluster.client, path).await?.is_none(),
        "the BundleDeployment still exists"
    );
    let left = bundle_config_maps(cluster).await?;
    anyhow::ensure!(left.is_empty(), "{left:?} remain");
    let said = cluster.command.fail(&["uninstall", "sample"]).await?;
    anyhow::ensure!(said.contains("BundleDeployment sample not found"), "{said}");
    Ok(())
}

pub(super) async fn the_command_rejects_an_invalid_bundle(cluster: &TestCluster) -> anyhow::Result<()> {
    let broken = sample::bundle("broken").join("webhook-deployment");
    let arguments = [&["install", argument(&broken)?], &INSTALL[..]].concat();
    let said = cluster.command.fail(&arguments).await?;
    anyhow::ensure!(
        said.starts_with("manifests/csv.yaml: $.spec.webhookdefinitions[0].deploymentName: "),
        "{said}"
    );
    let written = list(&cluster.client, BUNDLE_DEPLOYMENTS).await?;
    anyhow::ensure!(
        written.is_empty() && bundle_config_maps(cluster).await?.is_empty(),
        "objects of a broken bundle were written"
    );
    Ok(())
}

pub(super) async fn the_command_fails_when_the_operator_rejects_the_bundle(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    traffic::create_namespace(cluster, "sample-system").await?;
    let accounts = "/api/v1/namespaces/sample-system/serviceaccounts";
    let account = json!({"metadata": {"name": "sample-operator", "labels": {"owner": "team-a"}}});
    succeed(&cluster.client, "POST", accounts, Some(&account)).await?;
    let bundle = sample::bundle("sample.v1");
    let arguments = [&["install", argument(&bundle)?], &INSTALL[..]].concat();
    let said = cluster.command.fail(&arguments).await?;
    anyhow::ensure!(
        said.contains(
            "Error: the install was refused: Accepted: ServiceAccount sample-system/sample-operator"
        ),
        "{said}"
    );
    let crd = get(&cluster.client, sample::DEFINITION).await?;
    anyhow::ensure!(crd.is_none(), "objects were installed before the rejection");

    // The conflicting object is deleted, and the same command succeeds.
    crate::steps::delete(&cluster.client, &format!("{accounts}/sample-operator")).await?;
    cluster.command.succeed(&arguments).await?;
    Ok(())
}

pub(super) async fn commands_print_json_events(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let bundle = sample::bundle("sample.v1");
    let install = [&["install", argument(&bundle)?, "--output", "json"], &INSTALL[..]].concat();
    let previewed = events(cluster, &[&install[..], &["--dry-run"]].concat()).await?;
    let [preview] = &previewed[..] else {
        anyhow::bail!("{previewed:?}");
    };
    let created = &preview["preview"]["created"];
    anyhow::ensure!(
        preview["event"] == "preview"
            && created
                .to_string()
                .contains("CustomResourceDefinition widgets.sample.windlass.dev"),
        "{preview}"
    );

    let installed = events(cluster, &install).await?;
    let waited = installed.iter().filter(|event| event["event"] == "waiting");
    let steps: Vec<_> = waited.filter_map(|event| event["step"].as_str()).collect();
    anyhow::ensure!(steps.contains(&"Available"), "{installed:?}");
    let result = result(&installed)?;
    let conditions = &result["object"]["status"]["conditions"];
    let ready = conditions.as_array().into_iter().flatten();
    let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    anyhow::ensure!(
        result["object"]["kind"] == "BundleDeployment" && ready.clone().any(is_ready),
        "{result}"
    );

    let certificate = format!("sample-system/{CERTIFICATE}");
    let rotated = events(cluster, &["rotate", &certificate, "--wait", "-o", "json"]).await?;
    let rotated = self::result(&rotated)?;
    anyhow::ensure!(rotated["object"]["status"]["phase"] == "Stable", "{rotated}");

    let removed = events(cluster, &["uninstall", "sample", "-o", "json"]).await?;
    let kept = &self::result(&removed)?["kept"];
    anyhow::ensure!(
        kept.to_string()
            .contains("CustomResourceDefinition widgets.sample.windlass.dev"),
        "{removed:?}"
    );
    Ok(())
}

/// Returns the events that a command prints with `-o json`.
async fn events(cluster: &TestCluster, arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
    let said = cluster.command.succeed(arguments).await?;
    let read = said.lines().map(serde_json::from_str);
    read.collect::<Result<_, _>>().with_context(|| said.clone())
}

/// Returns the last event.
fn result(events: &[Value]) -> anyhow::Result<&Value> {
    let last = events.last().filter(|event| event["event"] == "result");
    last.with_context(|| format!("the last event is not the result: {events:?}"))
}

async fn install(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<String> {
    let arguments = [&["install", argument(bundle)?], &INSTALL[..]].concat();
    cluster.command.succeed(&arguments).await
}

pub(super) async fn a_repeated_command_completes_an_interrupted_one(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(cluster, &sample::bundle("sample.v1")).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    let bundle = sample::bundle("sample.v2");
    let arguments = [&["install", argument(&bundle)?], &INSTALL[..]].concat();
    let cuts = (1..).flat_map(|number| [(number, Cut::Before), (number, Cut::After)]);
    for (number, cut) in cuts {
        let proxy = Proxy::open(cluster.client.clone()).await?;
        proxy.cut_at(number, cut);
        let interrupted = Command {
            kubeconfig: cluster.write("proxy.kubeconfig", &proxy.kubeconfig())?,
            ..cluster.command.clone()
        };
        let output = tokio::select! {
            output = interrupted.run(&arguments, |_| {}) => Some(output?),
            () = proxy.closed() => None,
        };
        check_source(cluster)
            .await
            .with_context(|| format!("cut at write {number}, {cut:?}"))?;
        if let Some(output) = output {
            anyhow::ensure!(output.succeeded, "{}", output.stderr);
            tracing::info!(number, "Cut the command at every write");
            break;
        }
    }
    let left = bundle_config_maps(cluster).await?;
    anyhow::ensure!(left.len() == 2, "{left:?} remain");
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Checks that each ConfigMap in the source of the BundleDeployment exists.
async fn check_source(cluster: &TestCluster) -> anyhow::Result<()> {
    let path = sample::BUNDLE_DEPLOYMENT;
    let deployment = get(&cluster.client, path).await?.context("no BundleDeployment")?;
    let there = bundle_config_maps(cluster).await?;
    let referred = deployment["spec"]["source"]["configMaps"].as_array();
    for config_map in referred.context("no source")? {
        let name = crate::request::text(config_map, "/name");
        anyhow::ensure!(
            there.iter().any(|part| part == name),
            "ConfigMap {name} of the source does not exist; found: {there:?}"
        );
    }
    Ok(())
}

/// Checks the output of `status` and `certs` after one upgrade and one rotation.
async fn check_views(cluster: &TestCluster) -> anyhow::Result<()> {
    let status = cluster.command.found(&["status", "sample"]).await?;
    anyhow::ensure!(
        status["ready"] == true && status["installed"]["name"] == "sample.v2",
        "{status}"
    );
    let certificates = cluster
        .command
        .found(&["certs", "--namespace", "sample-system"])
        .await?;
    let certificate = &certificates[0];
    anyhow::ensure!(
        certificate["name"] == CERTIFICATE && certificate["ca"]["current"]["generation"] == 2,
        "{certificates}"
    );
    for arguments in [&["status"][..], &["status", "sample"], &["certs"]] {
        let table = cluster.command.succeed(arguments).await?;
        anyhow::ensure!(
            table.contains("sample") && table.lines().all(|line| line.chars().count() <= 120),
            "{table}"
        );
    }
    let page = cluster.command.succeed(&["report", "-"]).await?;
    for shown in [
        "Nothing is wrong",
        "sample.v2",
        CERTIFICATE,
        "widgets.sample.windlass.dev",
    ] {
        anyhow::ensure!(page.contains(shown), "the page does not show {shown}: {page}");
    }
    Ok(())
}

/// Returns the names of the ConfigMaps with bundles.
async fn bundle_config_maps(cluster: &TestCluster) -> anyhow::Result<Vec<String>> {
    let path = format!(
        "/api/v1/namespaces/{}/configmaps?labelSelector=windlass.dev%2Fbundle-source%3Dsample",
        operator::NAMESPACE
    );
    let listed = list(&cluster.client, &path).await?;
    let names = listed
        .iter()
        .map(|object| crate::request::text(object, "/metadata/name"));
    Ok(names.map(str::to_owned).collect())
}
