//! What a user does with a cluster by commands.

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

pub(super) async fn the_command_installs_upgrades_and_removes(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let installed = install(cluster, &sample::bundle("sample.v1")).await?;
    anyhow::ensure!(
        installed
            == "sample.v1 is installed in sample-system; armed: 1 conversion, 2 webhook configurations\n",
        "{installed}"
    );
    let first = parts(cluster).await?;
    anyhow::ensure!(!first.is_empty(), "the bundle is in no ConfigMap");
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;

    // The same again changes nothing; another bundle is another set of ConfigMaps, and the first stays to be gone back to.
    let path = sample::BUNDLE_DEPLOYMENT;
    let before = get(&cluster.client, path).await?.context("no BundleDeployment")?;
    install(cluster, &sample::bundle("sample.v1")).await?;
    let after = get(&cluster.client, path).await?.context("no BundleDeployment")?;
    anyhow::ensure!(
        before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
            && parts(cluster).await? == first,
        "an install of what is installed has written something"
    );
    install(cluster, &sample::bundle("sample.v2")).await?;
    let second = parts(cluster).await?;
    anyhow::ensure!(
        second.len() == 2 * first.len() && first.iter().all(|part| second.contains(part)),
        "{first:?} became {second:?}"
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
    anyhow::ensure!(get(&cluster.client, path).await?.is_none(), "it is still there");
    let left = parts(cluster).await?;
    anyhow::ensure!(left.is_empty(), "{left:?} were left");
    let said = cluster.command.fail(&["uninstall", "sample"]).await?;
    anyhow::ensure!(said.contains("BundleDeployment sample not found"), "{said}");
    Ok(())
}

pub(super) async fn the_command_installs_nothing_of_a_broken_bundle(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let broken = sample::bundle("broken").join("webhook-deployment");
    let arguments = [&["install", argument(&broken)?], &INSTALL[..]].concat();
    let said = cluster.command.fail(&arguments).await?;
    anyhow::ensure!(
        said.starts_with("manifests/csv.yaml: $.spec.webhookdefinitions[0].deploymentName: "),
        "{said}"
    );
    let written = list(&cluster.client, BUNDLE_DEPLOYMENTS).await?;
    anyhow::ensure!(
        written.is_empty() && parts(cluster).await?.is_empty(),
        "something was written of a bundle that is broken"
    );
    Ok(())
}

pub(super) async fn the_command_ends_when_the_operator_refuses(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    traffic::namespace(cluster, "sample-system").await?;
    let accounts = "/api/v1/namespaces/sample-system/serviceaccounts";
    let account = json!({"metadata": {"name": "sample-operator", "labels": {"owner": "somebody"}}});
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
    anyhow::ensure!(crd.is_none(), "something was installed before the refusal");

    // What stood in the way goes, and the same command goes on.
    crate::steps::delete(&cluster.client, &format!("{accounts}/sample-operator")).await?;
    cluster.command.succeed(&arguments).await?;
    Ok(())
}

pub(super) async fn programs_follow_commands_by_their_events(cluster: &TestCluster) -> anyhow::Result<()> {
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

/// What a command says to programs.
async fn events(cluster: &TestCluster, arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
    let said = cluster.command.succeed(arguments).await?;
    let read = said.lines().map(serde_json::from_str);
    read.collect::<Result<_, _>>().with_context(|| said.clone())
}

/// The last event.
fn result(events: &[Value]) -> anyhow::Result<&Value> {
    let last = events.last().filter(|event| event["event"] == "result");
    last.with_context(|| format!("the result is not last: {events:?}"))
}

async fn install(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<String> {
    let arguments = [&["install", argument(bundle)?], &INSTALL[..]].concat();
    cluster.command.succeed(&arguments).await
}

pub(super) async fn an_interrupted_command_is_taken_up_by_the_next(
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
            tracing::info!(number, "The command was cut at every write");
            break;
        }
    }
    let left = parts(cluster).await?;
    anyhow::ensure!(left.len() == 2, "{left:?} were left");
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

/// Every ConfigMap that the BundleDeployment refers to must be there.
async fn check_source(cluster: &TestCluster) -> anyhow::Result<()> {
    let path = sample::BUNDLE_DEPLOYMENT;
    let deployment = get(&cluster.client, path).await?.context("no BundleDeployment")?;
    let there = parts(cluster).await?;
    let referred = deployment["spec"]["source"]["configMaps"].as_array();
    for config_map in referred.context("no source")? {
        let name = crate::request::text(config_map, "/name");
        anyhow::ensure!(
            there.iter().any(|part| part == name),
            "{name} is referred to and not there; there are {there:?}"
        );
    }
    Ok(())
}

/// What `status` and `certs` say about the sample that has been upgraded and rotated once.
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

/// The names of the ConfigMaps with bundles.
async fn parts(cluster: &TestCluster) -> anyhow::Result<Vec<String>> {
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
