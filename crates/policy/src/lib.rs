//! Declarative policies for Kubernetes objects: they override and validate objects when they are written.
//!
//! The kinds are those of `policy.kcloudlabs.io/v1alpha1`: OverridePolicy for the objects of its namespace,
//! ClusterOverridePolicy and ClusterValidatePolicy for all.
//!
//! ```text
//! policy object -> CompiledPolicy -> PolicySet -> override_object, validate -> a patch, or reasons
//!                                        |  ^
//!                      DataReferences <--+  +-- Answers
//! ```
//!
//! Evaluation is pure: referenced objects and responses of servers are arguments. An evaluation that lacks
//! data returns the references, and the caller repeats it with the answers.
//!
//! ```
//! use policy::{AdmissionAttributes, Answers, CompiledPolicy, Engines, EvaluationBudget, PolicyEvaluation, PolicySet, patch::JsonPatchOperation};
//! use serde_json::json;
//!
//! let engines = Engines::built_in();
//! let policy = CompiledPolicy::compile(&json!({
//!     "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": "added-by"},
//!     "spec": {
//!         "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod"}],
//!         "overrideRules": [{
//!             "targetOperations": ["CREATE"],
//!             "overriders": {"plaintext": [{"op": "add", "path": "/metadata/annotations/added-by", "value": "op"}]},
//!         }],
//!     },
//! }), &engines).unwrap();
//! let policies = PolicySet::new([policy.into()]);
//!
//! let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}});
//! let attributes = AdmissionAttributes::create(&pod);
//! let answers = Answers::default();
//! let outcome = match policies.override_object(&attributes, &answers, &EvaluationBudget::default()) {
//!     PolicyEvaluation::Done(outcome) => outcome,
//!     // Fetch the references, insert the answers, and evaluate again.
//!     PolicyEvaluation::Missing(references) => unreachable!("this policy has no references: {references:?}"),
//! };
//! let patch: Vec<_> = outcome.patch.iter().map(JsonPatchOperation::to_json).collect();
//! assert_eq!(json!(patch), json!([{"op": "add", "path": "/metadata/annotations", "value": {"added-by": "op"}}]));
//! ```
//!
//! Rules in CUE and CEL need the features `cue` and `cel`.

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
        AppliedStep, EvaluationGate, ExplainedPart, FailureReason, OverrideOutcome, PolicyEvaluation,
        PolicyExplanation, PolicyFailure, PolicyFinding, PolicySet, ValidationOutcome,
    },
    policy_object::{PolicyKey, PolicyKind, PolicyObject, PolicySpec},
    problem::{PolicyProblem, ProgramPosition},
    reference::{Answers, DataReference, FetchedAnswer, HttpRequest, ObjectSelection, ReferencedObjects},
    rehearsal::{KnownData, KnownResponse, Rehearsal},
    review::{admit, check, rendering, rule_statuses},
    selection::SelectionError,
};
