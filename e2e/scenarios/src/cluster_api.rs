//! Cluster API's own code, which judges what we write: `e2e/runtime-hooks`.

use std::{fs, path::PathBuf};

use anyhow::Context;
use serde_json::Value;
use tokio::process::Command;

use crate::{request::text, test_cluster::TestCluster};

/// The variable that names the program. Without it, nobody judges.
const PROGRAM: &str = "E2E_RUNTIME_HOOKS";

/// Has Cluster API's reader of ExtensionConfigs say whether it takes `config`, as it is in the cluster, for discovered, and
/// register so many handlers.
///
/// # Errors
///
/// When it does not.
pub(crate) async fn registers(cluster: &TestCluster, config: &Value, handlers: usize) -> anyhow::Result<()> {
    let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        tracing::info!("{PROGRAM} names no program: Cluster API's reader is not asked");
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
    let said: Value = serde_json::from_slice(&said.stdout).context("it says no JSON")?;
    let registered = said["registered"].as_array().map_or(0, Vec::len);
    anyhow::ensure!(
        registered == handlers && text(&said, "/error").is_empty(),
        "Cluster API's reader of {config} says {said}"
    );
    Ok(())
}
