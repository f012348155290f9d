//! Dry runs of installs: by the operator before each install, and by the command on request.

use anyhow::Context;
use serde_json::json;

use crate::{
    command::argument,
    sample,
    steps::{self, PATIENCE, condition, conditions, get, succeed},
    test_cluster::TestCluster,
};

/// The ConfigMap of the sample.
const CONFIG: &str = "/api/v1/namespaces/sample-system/configmaps/sample-operator-config";

pub(super) async fn objects_that_the_api_server_would_reject_block_the_install(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let first = cluster.add_bundle(&sample::bundle("sample.v1"), "first")?;
    cluster.edit(
        &first,
        "data:\n  color: blue",
        "immutable: true\ndata:\n  color: blue",
    )?;
    steps::install(&cluster.client, "sample", sample::NAMESPACE, &first).await?;
    let before = get(&cluster.client, sample::DEPLOYMENT)
        .await?
        .context("no Deployment")?;
    let crd = sample::crd(cluster).await?;

    let second = cluster.add_bundle(&sample::bundle("sample.v2"), "second")?;
    cluster.edit(
        &second,
        "data:\n  color: blue",
        "immutable: true\ndata:\n  color: green",
    )?;
    sample::set_source(cluster, "second").await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    let refused = condition(&cluster.client, path, "Accepted", "False", PATIENCE).await?;
    let said = conditions(&refused);
    for word in ["DryRunRefused", "sample-operator-config", "delete the object"] {
        anyhow::ensure!(said.contains(word), "{said}");
    }
    let after = get(&cluster.client, sample::DEPLOYMENT)
        .await?
        .context("no Deployment")?;
    anyhow::ensure!(
        after["metadata"]["generation"] == before["metadata"]["generation"],
        "{after}"
    );
    let now = sample::crd(cluster).await?;
    anyhow::ensure!(
        now["metadata"]["generation"] == crd["metadata"]["generation"],
        "{now}"
    );

    // The step that the message recommends lets the upgrade continue.
    succeed(&cluster.client, "DELETE", CONFIG, None).await?;
    steps::ready(&cluster.client, "sample", PATIENCE).await?;
    let config = get(&cluster.client, CONFIG).await?.context("no ConfigMap")?;
    anyhow::ensure!(config["data"] == json!({"color": "green"}), "{config}");
    Ok(())
}

pub(super) async fn a_dry_run_prints_the_changes_and_writes_nothing(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let (older, newer) = (sample::bundle("sample.v1"), sample::bundle("sample.v2"));
    let install = |bundle| -> anyhow::Result<[&str; 6]> {
        let bundle = argument(bundle)?;
        Ok([
            "install",
            bundle,
            "--namespace",
            sample::NAMESPACE,
            "--name",
            "sample",
        ])
    };
    let shown = cluster
        .command
        .succeed(&[&install(&older)?[..], &["--dry-run"]].concat())
        .await?;
    for words in [
        "Would be created:",
        "CustomResourceDefinition widgets.sample.windlass.dev",
        "Rights granted",
        "Nothing was written.",
    ] {
        anyhow::ensure!(shown.contains(words), "{shown}");
    }
    for path in [sample::BUNDLE_DEPLOYMENT, sample::DEFINITION] {
        anyhow::ensure!(get(&cluster.client, path).await?.is_none(), "{path} was written");
    }
    cluster.command.succeed(&install(&older)?).await?;
    let shown = cluster
        .command
        .succeed(&[&install(&older)?[..], &["--dry-run"]].concat())
        .await?;
    anyhow::ensure!(shown.contains("Nothing would change."), "{shown}");
    let shown = cluster
        .command
        .succeed(&[&install(&newer)?[..], &["--dry-run"]].concat())
        .await?;
    anyhow::ensure!(
        shown.contains("Would be changed:") && shown.contains("Deployment sample-system/sample-operator: "),
        "{shown}"
    );

    // An object of another owner conflicts with a second install.
    let other = [
        "install",
        argument(&newer)?,
        "--namespace",
        "other-system",
        "--name",
        "other",
        "--dry-run",
    ];
    let output = cluster.command.run(&other, |_| {}).await?;
    anyhow::ensure!(!output.succeeded, "{}", output.stdout);
    anyhow::ensure!(
        output.stdout.contains("Would be refused:") && output.stdout.contains("claimed by"),
        "{}",
        output.stdout
    );
    Ok(())
}
