//! Policies for Kubernetes objects: they override and validate what is written, by rules that are data.
//!
//! The kinds are those of `policy.kcloudlabs.io/v1alpha1`: OverridePolicy for the objects of its namespace, ClusterOverridePolicy and
//! ClusterValidatePolicy for all.
//!
//! It is pure: what a rule needs from elsewhere, other objects and answers of servers, comes as an argument.

mod admission;
pub mod api;
pub mod cases;
#[cfg(feature = "cel")]
pub mod cel;
mod compiled;
mod crds;
#[cfg(feature = "cue")]
pub mod cue;
mod engine;
mod evaluation;
mod origin;
pub mod patch;
mod policy_object;
mod problem;
mod reference;
mod rehearsal;
pub mod render;
mod review;
mod selection;
#[cfg(test)]
mod tests;

pub use self::{
    admission::{AdmissionAttributes, AdmissionOperation},
    compiled::{CompiledPolicy, RuleStep},
    crds::crds,
    engine::{Engines, EvaluationBudget, ProgramError, RuleEngine, RuleProgram, RuleSource},
    evaluation::{
        AppliedStep, Evaluation, ExplainedPart, FailureReason, Finding, OverrideOutcome, PolicyExplanation,
        PolicyFailure, PolicySet, ValidationOutcome,
    },
    policy_object::{PolicyKey, PolicyKind, PolicyObject, PolicySpec},
    problem::{PolicyProblem, ProgramPosition},
    reference::{Answer, Answers, DataReference, HttpRequest},
    rehearsal::{KnownData, KnownResponse, Rehearsal},
    review::{admit, check, rendering, rule_statuses},
    selection::SelectionError,
};
