//! Helm as people run it: `e2e/helm`.

use std::{fs, path::Path, process::Stdio};

use anyhow::Context;
use serde_json::Value;
use tokio::process::Command;

use crate::test_cluster::TestCluster;

/// The variable that names the program. Without it, nothing runs it.
pub const PROGRAM: &str = "E2E_HELM";

/// Runs Helm as the cluster admin, in a namespace: what it printed, and whether it succeeded.
///
/// # Errors
///
/// When no program is named, or it cannot be started.
pub(crate) async fn run(
    cluster: &TestCluster,
    namespace: &str,
    arguments: &[&str],
) -> anyhow::Result<(bool, String)> {
    let program = std::env::var_os(PROGRAM).with_context(|| format!("{PROGRAM} names no program"))?;
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

/// The same; it must succeed.
///
/// # Errors
///
/// When it does not; what it printed is in the error.
pub(crate) async fn succeed(
    cluster: &TestCluster,
    namespace: &str,
    arguments: &[&str],
) -> anyhow::Result<String> {
    let (succeeded, printed) = run(cluster, namespace, arguments).await?;
    anyhow::ensure!(succeeded, "helm {} has failed:\n{printed}", arguments.join(" "));
    Ok(printed)
}

/// The same; it must fail.
///
/// # Errors
///
/// When it succeeds.
pub(crate) async fn fail(
    cluster: &TestCluster,
    namespace: &str,
    arguments: &[&str],
) -> anyhow::Result<String> {
    let (succeeded, printed) = run(cluster, namespace, arguments).await?;
    anyhow::ensure!(
        !succeeded,
        "helm {} should have failed:\n{printed}",
        arguments.join(" ")
    );
    Ok(printed)
}

/// Writes a chart with these objects into a folder.
///
/// # Errors
///
/// When it cannot be written.
pub(crate) fn chart(folder: &Path, version: &str, objects: &[Value]) -> anyhow::Result<()> {
    let templates = folder.join("templates");
    fs::create_dir_all(&templates)?;
    let chart = format!("apiVersion: v2\nname: widgets\nversion: {version}\n");
    fs::write(folder.join("Chart.yaml"), chart)?;
    let documents: Vec<_> = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    // JSON is YAML, but what is in braces twice would be a template.
    let text = documents.concat().replace("{{", "{ {").replace("}}", "} }");
    fs::write(templates.join("all.yaml"), text)?;
    Ok(())
}
