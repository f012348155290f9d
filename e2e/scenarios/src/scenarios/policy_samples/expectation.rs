//! Whether an API server answers what a case says.

use std::collections::BTreeSet;

use policy::{
    AdmissionOperation,
    cases::{ExpectedObject, PolicyCase, merged},
};
use serde_json::Value;

use super::objects::comparable;
use crate::request::RequestAnswer;

/// The object of a case as it is expected to become.
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

/// Whether an answer is what a case says.
pub(super) fn is_expected(
    case: &PolicyCase,
    expected: Option<&Value>,
    answer: &RequestAnswer,
) -> anyhow::Result<bool> {
    let outcome = &case.expected;
    if warnings_of(answer) != outcome.warnings {
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
            answer.code == 200 && has_all(&answer.body, &expected) && has_marks(&answer.body, &expected)
        }
    })
}

/// What policies warn of: API servers warn of other things, too.
fn warnings_of(answer: &RequestAnswer) -> Vec<&str> {
    let warnings = answer.warnings.iter().map(String::as_str);
    warnings
        .filter(|warning| warning.starts_with("ClusterValidatePolicy "))
        .collect()
}

/// Whether an object has all that another says.
fn has_all(object: &Value, expected: &Value) -> bool {
    match (object, expected) {
        (Value::Object(object), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| object.get(name).is_some_and(|value| has_all(value, expected))),
        (Value::Array(items), Value::Array(expected)) => {
            items.len() == expected.len()
                && items
                    .iter()
                    .zip(expected)
                    .all(|(item, expected)| has_all(item, expected))
        }
        (value, expected) => value == expected,
    }
}

/// Whether an object has the labels and annotations of another, and no more but those of Kubernetes itself.
fn has_marks(object: &Value, expected: &Value) -> bool {
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
