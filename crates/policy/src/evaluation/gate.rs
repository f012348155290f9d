//! The gate in front of the evaluation of policies.

use crate::CompiledPolicy;

/// Admits policies to an evaluation, and observes when each begins and ends, since this crate has no clock.
///
/// A repeated evaluation with more answers passes the gate again.
pub trait EvaluationGate: Sync {
    /// Decides whether a matching policy is evaluated now. A rejected policy is skipped.
    fn enter(&self, policy: &CompiledPolicy) -> bool;

    /// Called after the evaluation of an admitted policy.
    fn leave(&self, policy: &CompiledPolicy);
}

/// A gate that admits all policies.
pub(crate) struct OpenGate;

impl EvaluationGate for OpenGate {
    fn enter(&self, _policy: &CompiledPolicy) -> bool {
        true
    }

    fn leave(&self, _policy: &CompiledPolicy) {}
}
