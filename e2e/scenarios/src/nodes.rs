//! The nodes of a cluster that `e2e/cluster/run` started, and faults of them.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tokio::process::Command;

use crate::kept_program::{KeptProgram, control_plane, execute};

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
        let folder = control_plane()?.parent().context("no folder")?.to_owned();
        Ok(Self { folder })
    }

    /// Kills a program of a node and keeps it down.
    ///
    /// # Errors
    ///
    /// Fails if the program does not run.
    pub(crate) async fn stop(&self, node: u8, program: NodeProgram) -> anyhow::Result<()> {
        self.kept(node, program.name()).keep_down()?;
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
                self.kept(node, program).start().await?;
            }
        }
        Ok(())
    }

    /// Returns the number of nodes.
    ///
    /// # Errors
    ///
    /// Fails if the cluster has none.
    pub(crate) fn count(&self) -> anyhow::Result<u8> {
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
        let process = self.kept(node, program.name()).process()?;
        self.run(node, &["kill", "-s", "KILL", &process]).await
    }

    /// Cuts the power of a node: all its processes end at once. It stays down.
    ///
    /// # Errors
    ///
    /// Fails if the node does not run.
    pub(crate) async fn cut_power(&self, node: u8) -> anyhow::Result<()> {
        let machine = self.kept(node, "node");
        machine.keep_down()?;
        let process = machine.process()?;
        execute(Command::new("kill").args(["-s", "KILL", &process])).await
    }

    /// Kills the processes with this name in the containers of all nodes, as a node without memory does.
    ///
    /// # Errors
    ///
    /// Fails if a command cannot run on a node.
    pub(crate) async fn kill_in_containers(&self, process: &str) -> anyhow::Result<()> {
        let kill = format!("pkill -KILL -x {process} || test $? = 1");
        for node in 1..=self.count()? {
            self.run(node, &["sh", "-c", &kill]).await?;
        }
        Ok(())
    }

    /// Runs a command in the namespaces of a node.
    async fn run(&self, node: u8, command: &[&str]) -> anyhow::Result<()> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster/on-node");
        execute(Command::new(script).arg(node.to_string()).args(command)).await
    }

    fn kept(&self, node: u8, program: &'static str) -> KeptProgram {
        KeptProgram::new(&self.folder.join(format!("node-{node}")), program)
    }
}
