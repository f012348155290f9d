//! What lets policies be asked.

use crate::CompiledPolicy;

/// Lets policies be asked, one after another, and sees when each begins and ends: this crate has no clock.
///
/// What is asked again with more answers passes once more.
pub trait EvaluationGate: Sync {
    /// Whether a policy that is for an object is asked about it now. One that is not is as if it were not there.
    fn enter(&self, policy: &CompiledPolicy) -> bool;

    /// One that has entered has been asked.
    fn leave(&self, policy: &CompiledPolicy);
}

/// Lets all of them be asked.
pub(crate) struct OpenGate;

// === impl OpenGate ===

impl EvaluationGate for OpenGate {
    fn enter(&self, _policy: &CompiledPolicy) -> bool {
        true
    }

    fn leave(&self, _policy: &CompiledPolicy) {}
}
