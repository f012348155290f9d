//! The operator, running behind a gate that counts its requests.

use std::path::Path;

use crate::{bed::Bed, gate::Gate, operator::Running, progress::Progress, steps};

/// The operator and the gate before it.
pub(super) struct Started {
    pub(super) gate: Gate,
    pub(super) operator: Running,
}

// === impl Started ===

impl Started {
    /// Starts the operator, and installs the sample `bundle`.
    pub(super) async fn new(bed: &Bed, bundle: &Path, progress: &Progress) -> anyhow::Result<Self> {
        let (operator, gate) = bed.gated(&bed.operator).await?;
        let operator = operator.start()?;
        let installed = steps::install(&bed.client, "sample", "sample-system", bundle);
        progress.step("Installing the sample bundle", installed).await?;
        Ok(Self { gate, operator })
    }
}
