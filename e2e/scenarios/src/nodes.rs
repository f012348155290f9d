//! The nodes of a cluster that `e2e/cluster/run` started, and faults of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use tokio::process::Command;

use crate::steps::{PATIENCE, check, until};

/// The variable with the folder of the control plane.
const CLUSTER: &str = "E2E_CLUSTER";

/// The programs and nodes of a cluster: see `e2e/cluster/start`.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    folder: PathBuf,
}

/// A program of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeProgram {
    Kubelet,
    Containerd,
    KubeProxy,
}

impl NodeProgram {
    fn name(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::Containerd => "containerd",
            Self::KubeProxy => "kube-proxy",
        }
    }
}

impl Nodes {
    /// Finds the nodes of the cluster in which this process runs.
    ///
    /// # Errors
    ///
    /// Fails if `e2e/cluster/run` did not start this process.
    pub(crate) fn here() -> anyhow::Result<Self> {
        let plane = std::env::var_os(CLUSTER).context("start this with e2e/cluster/run")?;
        let folder = Path::new(&plane).parent().context("no folder")?.to_owned();
        Ok(Self { folder })
    }

    /// Kills a program of a node and keeps it down.
    ///
    /// # Errors
    ///
    /// Fails if the program does not run.
    pub(crate) async fn stop(&self, node: u8, program: NodeProgram) -> anyhow::Result<()> {
        fs::write(self.stop_file(node, program.name()), "")?;
        self.kill(node, program).await
    }

    /// Starts everything that was stopped, and waits until it runs.
    ///
    /// # Errors
    ///
    /// Fails if a program does not start.
    pub(crate) async fn start_all(&self) -> anyhow::Result<()> {
        for node in 1..=self.count()? {
            for program in ["node", "kubelet", "kube-proxy"] {
                self.start(node, program).await?;
            }
        }
        Ok(())
    }

    async fn start(&self, node: u8, program: &str) -> anyhow::Result<()> {
        let stop = self.stop_file(node, program);
        if !stop.exists() {
            return Ok(());
        }
        let before = self.read(node, program)?;
        fs::remove_file(stop)?;
        until(&format!("{program} of node-{node} runs"), PATIENCE, async || {
            let now = self.read(node, program)?;
            Ok(check(now != before, || "the previous process".to_owned()))
        })
        .await
    }

    /// Returns the number of nodes.
    fn count(&self) -> anyhow::Result<u8> {
        let is_node = |number: &u8| self.folder.join(format!("node-{number}")).exists();
        (1..=9)
            .take_while(is_node)
            .last()
            .context("the cluster has no nodes")
    }

    /// Kills a program of a node, which is restarted.
    ///
    /// # Errors
    ///
    /// Fails if the program does not run.
    pub(crate) async fn kill(&self, node: u8, program: NodeProgram) -> anyhow::Result<()> {
        let process = self.read(node, program.name())?;
        self.run(node, &["kill", "-s", "KILL", &process]).await
    }

    /// Cuts the power of a node: all its processes end at once. It stays down.
    ///
    /// # Errors
    ///
    /// Fails if the node does not run.
    pub(crate) async fn cut_power(&self, node: u8) -> anyhow::Result<()> {
        fs::write(self.stop_file(node, "node"), "")?;
        let process = self.read(node, "node")?;
        execute(Command::new("kill").args(["-s", "KILL", &process])).await
    }

    /// Runs a command in the namespaces of a node.
    async fn run(&self, node: u8, command: &[&str]) -> anyhow::Result<()> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster/on-node");
        execute(Command::new(script).arg(node.to_string()).args(command)).await
    }

    fn running(&self, node: u8) -> PathBuf {
        self.folder.join(format!("node-{node}/running"))
    }

    fn read(&self, node: u8, program: &str) -> anyhow::Result<String> {
        let file = self.running(node).join(format!("{program}.pid"));
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(text.trim().to_owned())
    }

    fn stop_file(&self, node: u8, program: &str) -> PathBuf {
        self.running(node).join(format!("{program}.stop"))
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
