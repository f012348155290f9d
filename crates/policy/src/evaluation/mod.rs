//! Evaluates policies for a request.

mod explanation;
mod failure;
mod gate;
mod override_outcome;
mod policy_set;
mod processing;
mod subject;
#[cfg(test)]
mod tests;
mod validation;

pub(crate) use self::gate::OpenGate;
pub use self::{
    explanation::{ExplainedPart, PolicyExplanation},
    failure::{FailureReason, PolicyFailure},
    gate::EvaluationGate,
    override_outcome::{AppliedStep, OverrideOutcome},
    policy_set::{PolicyEvaluation, PolicySet},
    validation::{PolicyFinding, ValidationOutcome},
};
