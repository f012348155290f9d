//! The programs that `e2e/cluster/start` keeps running.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use tokio::process::Command;

use crate::steps::{PATIENCE, check, until};

/// The variable with the folder of the control plane.
const CLUSTER: &str = "E2E_CLUSTER";

/// Returns the folder of the control plane.
///
/// # Errors
///
/// Fails if `e2e/cluster/run` did not start this process.
pub(crate) fn control_plane() -> anyhow::Result<PathBuf> {
    let folder = std::env::var_os(CLUSTER).context("start this with e2e/cluster/run")?;
    Ok(folder.into())
}

/// A program that is started again when it ends, unless it is kept down.
pub(crate) struct KeptProgram {
    running: PathBuf,
    name: &'static str,
}

impl KeptProgram {
    /// The program `name` of the machine with this folder.
    pub(crate) fn new(folder: &Path, name: &'static str) -> Self {
        let running = folder.join("running");
        Self { running, name }
    }

    /// Returns the process id.
    ///
    /// # Errors
    ///
    /// Fails if the program was never started.
    pub(crate) fn process(&self) -> anyhow::Result<String> {
        let file = self.running.join(format!("{}.pid", self.name));
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(text.trim().to_owned())
    }

    /// Keeps the program from being started again after its end.
    ///
    /// # Errors
    ///
    /// Fails if its file cannot be written.
    pub(crate) fn keep_down(&self) -> anyhow::Result<()> {
        Ok(fs::write(self.stop_file(), "")?)
    }

    /// Starts the program if it was kept down, and waits until it runs.
    ///
    /// # Errors
    ///
    /// Fails if the program does not start.
    pub(crate) async fn start(&self) -> anyhow::Result<()> {
        let stop = self.stop_file();
        if !stop.exists() {
            return Ok(());
        }
        let before = self.process()?;
        fs::remove_file(stop)?;
        until(&format!("{} runs", self.name), PATIENCE, async || {
            let now = self.process()?;
            Ok(check(now != before, || "the previous process".to_owned()))
        })
        .await
    }

    fn stop_file(&self) -> PathBuf {
        self.running.join(format!("{}.stop", self.name))
    }
}

/// Runs a command that must succeed.
///
/// # Errors
///
/// Fails with the command's standard error.
pub(crate) async fn execute(command: &mut Command) -> anyhow::Result<()> {
    let output = command
        .output()
        .await
        .with_context(|| format!("starting {command:?}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{command:?}: {}: {error}", output.status);
    Ok(())
}
