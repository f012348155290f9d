//! Compares responses of an API server with the expectations of a case.

use std::collections::BTreeSet;

use policy::{
    AdmissionOperation,
    cases::{ExpectedObject, PolicyCase, merged},
};
use serde_json::Value;

use super::objects::comparable;
use crate::request::RequestAnswer;

/// Returns the expected object of a case.
pub(super) fn expected_object(case: &PolicyCase) -> anyhow::Result<Value> {
    let before = case.object.object();
    Ok(match &case.expected.object {
        ExpectedObject::Same => before,
        ExpectedObject::Whole(object) => object.object(),
        ExpectedObject::Change(change) => merged(&before, change),
        ExpectedObject::Patch(patch) => {
            let mut object = before;
            let patch: json_patch::Patch = serde_json::from_value(patch.clone())?;
            json_patch::patch(&mut object, &patch)?;
            object
        }
    })
}

/// Reports whether a response is the expected one.
pub(super) fn is_expected(
    case: &PolicyCase,
    expected: Option<&Value>,
    answer: &RequestAnswer,
) -> anyhow::Result<bool> {
    let outcome = &case.expected;
    if policy_warnings(answer) != outcome.warnings {
        return Ok(false);
    }
    if let Some(reason) = &outcome.denied {
        return Ok(answer.is_denied() && answer.message().contains(reason.as_str()));
    }
    if let Some(error) = &outcome.error {
        return Ok(answer.code >= 400 && answer.message().contains(error.as_str()));
    }
    Ok(match (case.operation, expected) {
        (AdmissionOperation::Create, Some(expected)) => {
            answer.code == 201 && comparable(&answer.body) == *expected
        }
        (AdmissionOperation::Delete, _) => answer.code == 200,
        _ => {
            let expected = expected_object(case)?;
            answer.code == 200
                && contains_all(&answer.body, &expected)
                && has_same_labels(&answer.body, &expected)
        }
    })
}

/// Returns the warnings of policies. API servers send other warnings, too.
fn policy_warnings(answer: &RequestAnswer) -> Vec<&str> {
    let warnings = answer.warnings.iter().map(String::as_str);
    warnings
        .filter(|warning| warning.starts_with("ClusterValidatePolicy "))
        .collect()
}

/// Reports whether an object contains all fields of another.
fn contains_all(object: &Value, expected: &Value) -> bool {
    match (object, expected) {
        (Value::Object(object), Value::Object(expected)) => expected.iter().all(|(name, expected)| {
            object
                .get(name)
                .is_some_and(|value| contains_all(value, expected))
        }),
        (Value::Array(items), Value::Array(expected)) => {
            items.len() == expected.len()
                && items
                    .iter()
                    .zip(expected)
                    .all(|(item, expected)| contains_all(item, expected))
        }
        (value, expected) => value == expected,
    }
}

/// Reports whether an object has exactly the labels and annotations of another, except those of Kubernetes.
fn has_same_labels(object: &Value, expected: &Value) -> bool {
    ["labels", "annotations"].into_iter().all(|field| {
        let marks = |object: &Value| -> BTreeSet<(String, String)> {
            let marks = object["metadata"][field].as_object().into_iter().flatten();
            marks
                .filter(|(name, _)| !name.contains("kubernetes.io/"))
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect()
        };
        marks(object) == marks(expected)
    })
}
