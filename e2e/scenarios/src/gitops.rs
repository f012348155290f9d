//! Runs the engines of Argo CD and Flux, and kstatus (`e2e/gitops`), as processes next to the operator.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use anyhow::Context;
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::{
    steps::{PATIENCE, check, until},
    test_cluster::TestCluster,
};

/// The variable that names the program. Without it, the engines do not run.
pub const PROGRAM: &str = "E2E_GITOPS";

/// How long the program may take to end after `SIGTERM`.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// A running command of the program, killed on drop.
pub(crate) struct Gitops {
    child: Child,
    output: PathBuf,
}

impl Gitops {
    /// Starts a command as the cluster admin. Its flags come before the files and other arguments.
    ///
    /// # Errors
    ///
    /// Fails if the variable is not set or the process does not start.
    pub(crate) fn start(
        cluster: &TestCluster,
        command: &str,
        flags: &[&str],
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        let program =
            std::env::var_os(PROGRAM).with_context(|| format!("set {PROGRAM} to the gitops program"))?;
        let output = cluster.path(&format!("gitops-{command}.jsonl"));
        let child = Command::new(program)
            .arg(command)
            .arg("--kubeconfig")
            .arg(&cluster.command.kubeconfig)
            .args(flags)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(cluster.path(&format!("gitops-{command}.log")))?)
            .kill_on_drop(true)
            .spawn()
            .context("starting gitops")?;
        Ok(Self { child, output })
    }

    /// Returns the complete lines printed so far.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be read or is not JSON.
    pub(crate) fn lines(&self) -> anyhow::Result<Vec<Value>> {
        let text = fs::read_to_string(&self.output)?;
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = complete.lines().map(serde_json::from_str);
        Ok(lines.collect::<Result<_, _>>()?)
    }

    /// Waits until `count` more passes are complete. A pass that is under way does not count.
    ///
    /// # Errors
    ///
    /// Fails on a timeout.
    pub(crate) async fn wait_for_passes(&self, count: usize) -> anyhow::Result<()> {
        let passes = || -> anyhow::Result<usize> {
            let lines = self.lines()?;
            Ok(lines.iter().filter(|line| line["event"] == "pass").count())
        };
        let wanted = passes()? + 1 + count;
        until(&format!("{wanted} passes are complete"), PATIENCE, async || {
            let complete = passes()?;
            Ok(check(complete >= wanted, || complete.to_string()))
        })
        .await
    }

    /// Ends the command and returns all lines. The summary, not the exit code, counts errors.
    ///
    /// # Errors
    ///
    /// Fails if the process does not end in time.
    pub(crate) async fn stop(mut self) -> anyhow::Result<Vec<Value>> {
        let pid = self.child.id().context("gitops has ended")?;
        let sent = Command::new("kill")
            .args(["-s", "TERM", &pid.to_string()])
            .status()
            .await?;
        anyhow::ensure!(sent.success(), "sending SIGTERM to gitops failed");
        tokio::time::timeout(SHUTDOWN, self.child.wait())
            .await
            .context("gitops did not stop in time")??;
        self.lines()
    }
}
