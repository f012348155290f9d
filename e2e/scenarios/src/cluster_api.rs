//! Checks what Windlass writes with Cluster API's own code: `e2e/runtime-hooks`.

use std::{fs, path::PathBuf};

use anyhow::Context;
use serde_json::Value;
use tokio::process::Command;

use crate::{request::text, test_cluster::TestCluster};

/// The variable that names the program. Without it, the check is skipped.
const PROGRAM: &str = "E2E_RUNTIME_HOOKS";

/// Checks that Cluster API's reader of ExtensionConfigs accepts `config`, as it is in the cluster, as
/// discovered, and registers `handlers` handlers.
///
/// # Errors
///
/// Fails if the reader does not.
pub(crate) async fn registers(cluster: &TestCluster, config: &Value, handlers: usize) -> anyhow::Result<()> {
    let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        tracing::info!("{PROGRAM} is not set: skipping Cluster API's reader");
        return Ok(());
    };
    let file = cluster.path("extension-config.json");
    fs::write(&file, config.to_string())?;
    let asked = Command::new(program)
        .arg("discovered")
        .arg("--extension-config")
        .arg(&file)
        .output();
    let said = asked.await?;
    anyhow::ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said: Value = serde_json::from_slice(&said.stdout).context("the answer is not JSON")?;
    let registered = said["registered"].as_array().map_or(0, Vec::len);
    anyhow::ensure!(
        registered == handlers && text(&said, "/error").is_empty(),
        "Cluster API's reader answered for {config}: {said}"
    );
    Ok(())
}
