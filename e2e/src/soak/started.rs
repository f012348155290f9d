//! The operator, running behind a gate that counts its requests.

use std::path::Path;

use crate::{bed::Bed, gate::Gate, operator::Running, steps};

/// The operator and the gate before it.
pub(super) struct Started {
    pub(super) gate: Gate,
    pub(super) operator: Running,
}

// === impl Started ===

impl Started {
    /// Starts the operator.
    pub(super) async fn new(bed: &Bed) -> anyhow::Result<Self> {
        let gate = Gate::open(bed.operator_client().await?).await?;
        let kubeconfig = bed.write("gate.kubeconfig", &gate.kubeconfig())?;
        let operator = bed.operator.with_kubeconfig(&kubeconfig).start()?;
        Ok(Self { gate, operator })
    }

    /// Kills the operator, and starts it again behind the same gate.
    pub(super) async fn restart(self, bed: &Bed) -> anyhow::Result<Self> {
        let Self { gate, operator } = self;
        operator.kill().await?;
        let kubeconfig = bed.write("gate.kubeconfig", &gate.kubeconfig())?;
        let operator = bed.operator.with_kubeconfig(&kubeconfig).start()?;
        Ok(Self { gate, operator })
    }

    /// Installs the sample bundle.
    pub(super) async fn install(&self, bed: &Bed, bundle: &Path) -> anyhow::Result<()> {
        steps::install(&bed.client, "sample", "sample-system", bundle).await?;
        Ok(())
    }
}
