//! cert-manager's cainjector as a process beside the operator: `e2e/cainjector`.

use std::{fs::File, process::Stdio};

use anyhow::Context;
use tokio::process::{Child, Command};

use crate::{
    steps::{delete, get},
    test_cluster::TestCluster,
};

/// The variable that names the program. Without it, nothing runs it.
pub const PROGRAM: &str = "E2E_CAINJECTOR";

/// Its field manager.
pub(crate) const MANAGER: &str = "cert-manager-cainjector";

/// The Lease by which one replica of it leads.
pub(crate) const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cert-manager-cainjector-leader-election";

/// cert-manager's cainjector, running until it is dropped.
pub(crate) struct Cainjector {
    child: Child,
}

// === impl Cainjector ===

impl Cainjector {
    /// Starts it as the cluster admin.
    ///
    /// # Errors
    ///
    /// When no program is named, or the process cannot be started.
    pub(crate) async fn start(cluster: &TestCluster, arguments: &[&str]) -> anyhow::Result<Self> {
        // What held it in a scenario before may have been killed.
        if get(&cluster.client, LEASE).await?.is_some() {
            delete(&cluster.client, LEASE).await?;
        }
        let program = std::env::var_os(PROGRAM).with_context(|| format!("{PROGRAM} names no program"))?;
        let log = cluster.path("cainjector.log");
        let log = File::options().append(true).create(true).open(log)?;
        let child = Command::new(program)
            .arg("--kubeconfig")
            .arg(&cluster.command.kubeconfig)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("starting cainjector")?;
        Ok(Self { child })
    }

    /// `kill -9`: it goes on holding its Lease.
    ///
    /// # Errors
    ///
    /// When the process cannot be waited for.
    pub(crate) async fn crash(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing cainjector")
    }
}
