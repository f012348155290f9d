mod explanation;
mod failures;
mod hostile;
mod overrides;
#[cfg(feature = "cue")]
mod references;
mod validation;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    AdmissionAttributes, Answers, EvaluationBudget,
    tests::{adds, compiled, overriding, policy, validating},
};

fn set(policies: &[Value]) -> PolicySet {
    PolicySet::new(policies.iter().map(compiled))
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}, "spec": {"nodeName": "x"}})
}

#[track_caller]
fn done<T>(evaluation: PolicyEvaluation<T>) -> T {
    match evaluation {
        PolicyEvaluation::Done(outcome) => outcome,
        PolicyEvaluation::Missing(missing) => panic!("{missing:?}"),
    }
}

#[track_caller]
fn overridden(policies: &[Value], attributes: &AdmissionAttributes<'_>) -> OverrideOutcome {
    let budget = EvaluationBudget::default();
    done(set(policies).override_object(attributes, &Answers::default(), &budget))
}

#[track_caller]
fn validated(policies: &[Value], attributes: &AdmissionAttributes<'_>) -> ValidationOutcome {
    let budget = EvaluationBudget::default();
    done(set(policies).validate(attributes, &Answers::default(), &budget))
}

/// The patch of an outcome as JSON.
fn patch(outcome: &OverrideOutcome) -> Value {
    outcome
        .patch
        .iter()
        .map(crate::patch::JsonPatchOperation::to_json)
        .collect()
}

#[test]
fn policies_can_be_evaluated_concurrently() {
    fn shared<T: Send + Sync>(_: T) {}
    shared(Arc::new(set(&[])));
}
