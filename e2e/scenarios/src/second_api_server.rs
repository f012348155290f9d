//! The second API server of a cluster that `e2e/cluster/run --api-servers 2` started, and faults of it.

use std::{fs, path::PathBuf};

use anyhow::Context;
use kube::Client;
use tokio::process::Command;

use crate::{
    cluster,
    kept_program::{KeptProgram, control_plane, execute},
};

/// An API server with the same storage as the first one.
pub struct SecondApiServer {
    kubeconfig: PathBuf,
    program: KeptProgram,
}

impl SecondApiServer {
    /// Reports whether the cluster has one.
    pub fn exists() -> bool {
        Self::here().is_ok_and(|server| server.kubeconfig.exists())
    }

    /// Finds the second API server of the cluster in which this process runs.
    ///
    /// # Errors
    ///
    /// Fails if `e2e/cluster/run` did not start this process.
    pub(crate) fn here() -> anyhow::Result<Self> {
        let plane = control_plane()?;
        Ok(Self {
            kubeconfig: plane.join("kubeconfig-2"),
            program: KeptProgram::new(&plane.join("api-server-2"), "kube-apiserver"),
        })
    }

    /// Returns a client of a cluster admin.
    ///
    /// # Errors
    ///
    /// Fails if the cluster has only one API server.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let kubeconfig = fs::read_to_string(&self.kubeconfig)
            .with_context(|| format!("reading {}", self.kubeconfig.display()))?;
        cluster::client(&kubeconfig).await
    }

    /// Kills it and keeps it down.
    ///
    /// # Errors
    ///
    /// Fails if it does not run.
    pub(crate) async fn kill(&self) -> anyhow::Result<()> {
        self.program.keep_down()?;
        self.signal("KILL").await
    }

    /// Starts it after [`SecondApiServer::kill`].
    ///
    /// # Errors
    ///
    /// Fails if it does not start.
    pub(crate) async fn start(&self) -> anyhow::Result<()> {
        self.program.start().await
    }

    /// Pauses it: its caches lag when it resumes.
    ///
    /// # Errors
    ///
    /// Fails if it does not run.
    pub(crate) async fn pause(&self) -> anyhow::Result<()> {
        self.signal("STOP").await
    }

    /// Resumes it after [`SecondApiServer::pause`].
    ///
    /// # Errors
    ///
    /// Fails if it does not run.
    pub(crate) async fn resume(&self) -> anyhow::Result<()> {
        self.signal("CONT").await
    }

    async fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let process = self.program.process()?;
        execute(Command::new("kill").args(["-s", signal, &process])).await
    }
}
