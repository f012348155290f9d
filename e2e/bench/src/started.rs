//! The operator, running behind a proxy that counts its requests.

use std::path::Path;

use windlass_scenarios::{
    operator::{OperatorProcess, Running},
    progress::StepPrinter,
    proxy::Proxy,
    steps,
    test_cluster::TestCluster,
};

/// The operator and the proxy before it.
pub(super) struct Started {
    pub(super) proxy: Proxy,
    pub(super) operator: Running,
    program: OperatorProcess,
}

impl Started {
    /// Starts the operator, and installs the sample `bundle`.
    pub(super) async fn new(
        cluster: &TestCluster,
        bundle: &Path,
        progress: &StepPrinter,
    ) -> anyhow::Result<Self> {
        let (program, proxy) = cluster.proxied(&cluster.operator).await?;
        let operator = program.start()?;
        let installed = steps::install(&cluster.client, "sample", "sample-system", bundle);
        progress.step("Installing the sample bundle", installed).await?;
        Ok(Self {
            proxy,
            operator,
            program,
        })
    }

    /// Kills the operator, and starts it again behind the same proxy.
    pub(super) async fn restart(self) -> anyhow::Result<Self> {
        self.operator.kill().await?;
        Ok(Self {
            operator: self.program.start()?,
            ..self
        })
    }
}

/// Lets a sample bundle serve its webhooks in so many replicas.
pub(super) fn set_replicas(cluster: &TestCluster, bundle: &Path, replicas: u32) -> anyhow::Result<()> {
    if replicas == 2 {
        return Ok(());
    }
    cluster.edit(bundle, "replicas: 2", &format!("replicas: {replicas}"))
}
