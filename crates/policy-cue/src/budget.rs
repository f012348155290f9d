//! Limits of an evaluation.

/// The limits of one evaluation. Exceeding one ends it with [`crate::EvaluationError::Exhausted`].
pub struct CueBudget<'b> {
    /// The maximum number of evaluated expressions, fields and items.
    pub steps: u64,
    /// The maximum nesting of values and references. Each level needs stack: 100 fit into the 2 MiB of a
    /// thread even without optimizations.
    pub depth: u32,
    /// The maximum size in bytes of values that the evaluation creates. Inputs count only if they are copied.
    pub bytes: usize,
    /// Reports whether the deadline has passed; called every 256 steps. The crate has no clock.
    pub has_run_out: &'b dyn Fn() -> bool,
}

impl Default for CueBudget<'_> {
    /// 1,000,000 steps, 100 levels, 16 MiB, no deadline.
    fn default() -> Self {
        Self {
            steps: 1_000_000,
            depth: 100,
            bytes: 16 << 20,
            has_run_out: &|| false,
        }
    }
}
