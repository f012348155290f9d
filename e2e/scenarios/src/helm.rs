//! Runs Helm (`e2e/helm`) as a user does.

use std::{fs, path::Path, process::Stdio};

use anyhow::Context;
use serde_json::Value;
use tokio::process::Command;

use crate::test_cluster::TestCluster;

/// The variable that names the program. Without it, Helm does not run.
pub const PROGRAM: &str = "E2E_HELM";

/// Runs Helm as the cluster admin in a namespace. Returns the output and whether Helm succeeded.
///
/// # Errors
///
/// Fails if the variable is not set or the process does not start.
pub(crate) async fn run(
    cluster: &TestCluster,
    namespace: &str,
    arguments: &[&str],
) -> anyhow::Result<(bool, String)> {
    let program = std::env::var_os(PROGRAM).with_context(|| format!("set {PROGRAM} to the Helm program"))?;
    let home = cluster.path("helm-home");
    let output = Command::new(program)
        .args(["--namespace", namespace])
        .args(arguments)
        .env("KUBECONFIG", &cluster.command.kubeconfig)
        .env("HELM_CACHE_HOME", &home)
        .env("HELM_CONFIG_HOME", &home)
        .env("HELM_DATA_HOME", &home)
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("running helm")?;
    let printed = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&printed).into_owned(),
    ))
}

/// Runs Helm, which must succeed.
///
/// # Errors
///
/// Fails if Helm fails; the error contains the output.
pub(crate) async fn succeed(
    cluster: &TestCluster,
    namespace: &str,
    arguments: &[&str],
) -> anyhow::Result<String> {
    let (succeeded, printed) = run(cluster, namespace, arguments).await?;
    anyhow::ensure!(succeeded, "helm {} failed:\n{printed}", arguments.join(" "));
    Ok(printed)
}

/// Runs Helm, which must fail.
///
/// # Errors
///
/// Fails if Helm succeeds.
pub(crate) async fn fail(
    cluster: &TestCluster,
    namespace: &str,
    arguments: &[&str],
) -> anyhow::Result<String> {
    let (succeeded, printed) = run(cluster, namespace, arguments).await?;
    anyhow::ensure!(
        !succeeded,
        "helm {} must fail, but succeeded:\n{printed}",
        arguments.join(" ")
    );
    Ok(printed)
}

/// Writes a chart with these objects into a folder.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub(crate) fn chart(folder: &Path, version: &str, objects: &[Value]) -> anyhow::Result<()> {
    let templates = folder.join("templates");
    fs::create_dir_all(&templates)?;
    let chart = format!("apiVersion: v2\nname: widgets\nversion: {version}\n");
    fs::write(folder.join("Chart.yaml"), chart)?;
    let documents: Vec<_> = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    // JSON is YAML, but double braces would be a template.
    let text = documents.concat().replace("{{", "{ {").replace("}}", "} }");
    fs::write(templates.join("all.yaml"), text)?;
    Ok(())
}
