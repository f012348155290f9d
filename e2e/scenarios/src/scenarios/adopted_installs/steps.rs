//! Steps and checks of these scenarios.

use std::{path::Path, time::Duration};

use anyhow::Context;
use kube::Client;
use serde_json::Value;

use crate::{
    command::argument,
    request::text,
    sample::{self, NAMESPACE},
    steps::{BUNDLE_DEPLOYMENTS, MUTATING, VALIDATING, get},
    test_cluster::TestCluster,
};

/// The webhook configurations and CRD of the bundle.
pub(super) const OURS: [&str; 2] = ["sample-operator-service", "sample-operator-service-green"];

/// The versions that clients use.
pub(super) const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The times in milliseconds after which runs are killed: short for writes, which come first, and long for
/// waits.
pub(super) const KILLS: [u64; 6] = [300, 600, 1_200, 3_000, 8_000, 13_000];

/// The command that installs a bundle of the sample.
pub(super) fn install(bundle: &Path) -> anyhow::Result<[&str; 6]> {
    Ok([
        "install",
        argument(bundle)?,
        "--namespace",
        NAMESPACE,
        "--name",
        "sample",
    ])
}

/// Adopts the sample from `source`, as [`adopt_bundle`].
pub(super) async fn adopt(cluster: &TestCluster, source: &str, kills: &[u64]) -> anyhow::Result<()> {
    adopt_bundle(cluster, &sample::bundle("sample.v1"), source, kills).await
}

/// Adopts from `source`: runs the preview, then runs that are killed after `kills` milliseconds, then a
/// complete run.
pub(super) async fn adopt_bundle(
    cluster: &TestCluster,
    bundle: &Path,
    source: &str,
    kills: &[u64],
) -> anyhow::Result<()> {
    let install = [&install(bundle)?[..], &["--adopt-from", source]].concat();
    let shown = [&install[..], &["--dry-run"]].concat();
    let plan = cluster.command.succeed(&shown).await?;
    anyhow::ensure!(plan.contains("sample-operator"), "{plan}");
    run_with_kills(cluster, &install, kills).await
}

/// Undoes an adoption, after runs that are killed after `kills` milliseconds.
pub(super) async fn undo(cluster: &TestCluster, kills: &[u64]) -> anyhow::Result<()> {
    run_with_kills(cluster, &["adoption", "undo", "sample"], kills).await
}

/// Confirms an adoption, after runs that are killed after `kills` milliseconds.
pub(super) async fn confirm(cluster: &TestCluster, kills: &[u64]) -> anyhow::Result<()> {
    run_with_kills(cluster, &["adoption", "confirm", "sample"], kills).await
}

/// Runs a command, killed after each of `kills` milliseconds, then once to its end.
async fn run_with_kills(cluster: &TestCluster, arguments: &[&str], kills: &[u64]) -> anyhow::Result<()> {
    for milliseconds in kills {
        let run = cluster.command.run(arguments, |_| {});
        // Dropping the future kills the process.
        if let Ok(output) = tokio::time::timeout(Duration::from_millis(*milliseconds), run).await {
            let output = output?;
            anyhow::ensure!(output.succeeded, "{arguments:?} failed: {}", output.stderr);
            return Ok(());
        }
    }
    cluster.command.succeed(arguments).await?;
    Ok(())
}

/// Checks that the adopted objects call one of these Services, or are unchanged.
pub(super) async fn check_called_services(
    client: &Client,
    mutating: &str,
    services: &[&str],
) -> anyhow::Result<()> {
    for (path, pointer) in [
        (
            sample::DEFINITION.to_owned(),
            "/spec/conversion/webhook/clientConfig/service/name",
        ),
        (
            format!("{VALIDATING}/vwidget.sample.windlass.dev"),
            "/webhooks/0/clientConfig/service/name",
        ),
        (
            format!("{MUTATING}/{mutating}"),
            "/webhooks/0/clientConfig/service/name",
        ),
    ] {
        let caller = get(client, &path)
            .await?
            .with_context(|| format!("{path} does not exist"))?;
        let called = text(&caller, pointer);
        anyhow::ensure!(
            services.contains(&called),
            "{path} calls {called}, not one of {services:?}"
        );
    }
    Ok(())
}

/// Checks that nothing of the adoption remains.
pub(super) async fn check_adoption_removed(client: &Client) -> anyhow::Result<()> {
    for path in [
        format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/sample-operator-kept"),
        "/api/v1/namespaces/windlass-system/secrets/windlass-adoption-sample".to_owned(),
    ] {
        anyhow::ensure!(get(client, &path).await?.is_none(), "{path} exists");
    }
    Ok(())
}

/// Checks that Windlass owns nothing of this.
pub(super) async fn check_not_owned(client: &Client, paths: &[String]) -> anyhow::Result<()> {
    let deployment = format!("{BUNDLE_DEPLOYMENTS}/sample");
    anyhow::ensure!(get(client, &deployment).await?.is_none(), "{deployment} exists");
    anyhow::ensure!(get(client, sample::SERVING_CERTIFICATE).await?.is_none());
    for path in paths {
        let object: Value = get(client, path)
            .await?
            .with_context(|| format!("{path} does not exist"))?;
        let metadata = object["metadata"].to_string();
        anyhow::ensure!(
            !metadata.contains("windlass.dev/bundle-deployment")
                && !metadata.contains("windlass.dev/applied-as"),
            "{path}: {metadata}"
        );
    }
    Ok(())
}
