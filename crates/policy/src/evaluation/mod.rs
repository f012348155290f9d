//! What becomes of a request.

mod failure;
mod overriding;
mod policy_set;
mod processing;
mod subject;
#[cfg(test)]
mod tests;
mod validation;

pub use self::{
    failure::{FailureReason, PolicyFailure},
    overriding::{AppliedStep, OverrideOutcome},
    policy_set::{PolicyEvaluation, PolicySet},
    validation::{PolicyFinding, ValidationOutcome},
};
