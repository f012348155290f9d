//! Runs cert-manager's cainjector (`e2e/cainjector`) as a process next to the operator.

use std::{fs::File, process::Stdio};

use anyhow::Context;
use tokio::process::{Child, Command};

use crate::test_cluster::TestCluster;

/// The variable that names the program. Without it, cainjector does not run.
pub const PROGRAM: &str = "E2E_CAINJECTOR";

/// The field manager of cainjector.
pub(crate) const MANAGER: &str = "cert-manager-cainjector";

/// The Lease of cainjector's leader election.
pub(crate) const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cert-manager-cainjector-leader-election";

/// A running cainjector, stopped on drop.
pub(crate) struct Cainjector {
    child: Child,
}

impl Cainjector {
    /// Starts cainjector as the cluster admin.
    ///
    /// # Errors
    ///
    /// Fails if the variable is not set or the process does not start.
    pub(crate) fn start(cluster: &TestCluster, arguments: &[&str]) -> anyhow::Result<Self> {
        let program =
            std::env::var_os(PROGRAM).with_context(|| format!("set {PROGRAM} to the cainjector program"))?;
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

    /// Kills the process with `kill -9`, so that it keeps its Lease.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be waited for.
    pub(crate) async fn crash(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing cainjector")
    }
}
