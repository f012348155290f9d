//! How much an evaluation may take.

/// The limits of one evaluation. What goes beyond is stopped with [`crate::EvaluationError::Exhausted`].
pub struct CueBudget<'b> {
    /// How many expressions, fields and items are looked at.
    pub steps: u64,
    /// How deeply values and references may lead into each other. Each level takes stack: 100 fit into the 2 MiB of a thread also without
    /// optimizations.
    pub depth: u32,
    /// How many bytes the values may have that the evaluation makes. What is read from inputs counts only where it is copied.
    pub bytes: usize,
    /// Whether the time has run out; asked every 256 steps. The crate knows no clock.
    pub has_run_out: &'b dyn Fn() -> bool,
}

// === impl CueBudget ===

impl Default for CueBudget<'_> {
    /// 1,000,000 steps, 100 deep, 16 MiB, and all the time that takes.
    fn default() -> Self {
        Self {
            steps: 1_000_000,
            depth: 100,
            bytes: 16 << 20,
            has_run_out: &|| false,
        }
    }
}
