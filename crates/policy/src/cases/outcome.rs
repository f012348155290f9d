//! Compares the outcome of a case with the expected one.

use std::fmt;

use serde_json::{Value, json};

use super::{
    policy_case::{ExpectedObject, ExpectedOutcome},
    reader::merged,
};
use crate::{Rehearsal, ValidationOutcome, api::ValidationAction, patch::JsonPatchOperation};

/// What the policies did in a case, and how that differs from the expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseOutcome {
    /// The outcome of the policies.
    pub rehearsal: Rehearsal,
    /// Differences from the expected outcome; empty if the case passes.
    pub differences: Vec<CaseDifference>,
}

/// A difference from the expected outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseDifference {
    /// The field of `expect`.
    pub field: &'static str,
    /// The expected value: text, a list or an object; null for nothing.
    pub expected: Value,
    /// The actual value, in the same form.
    pub actual: Value,
}

impl CaseOutcome {
    /// Reports whether the case passes.
    pub fn passes(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Lists the differences.
pub(super) fn differences(
    expected: &ExpectedOutcome,
    object: &Value,
    rehearsal: &Rehearsal,
) -> Vec<CaseDifference> {
    let mut found = Vec::new();
    let mut compare = |field, expected: Value, actual: Value| {
        if expected != actual {
            found.push(CaseDifference {
                field,
                expected,
                actual,
            });
        }
    };
    let denials: Vec<_> = rehearsal
        .findings(ValidationAction::Deny)
        .map(|finding| finding.reason.as_str())
        .collect();
    compare("denied", json!(expected.denied), or_null(&denials.join("; ")));
    let failures: Vec<_> = rehearsal.refusals().map(ToString::to_string).collect();
    let failures = failures.join("; ");
    let is_expected = |error: &String| failures.contains(error.as_str()) && !failures.is_empty();
    if !expected.error.as_ref().is_some_and(is_expected) {
        compare("error", json!(expected.error), or_null(&failures));
    }
    // Other comparisons already show whether it is refused.
    let is_refusal_expected = expected.denied.is_some() || expected.error.is_some();
    if rehearsal.is_allowed() && !is_refusal_expected {
        let (before, after) = (object, &rehearsal.overriding.object);
        match &expected.object {
            ExpectedObject::Same => compare("object", before.clone(), after.clone()),
            ExpectedObject::Whole(object) => compare("object", object.object(), after.clone()),
            ExpectedObject::Change(change) => compare("change", merged(before, change), after.clone()),
            ExpectedObject::Patch(patch) => {
                let answer = rehearsal.overriding.patch.iter();
                compare(
                    "patch",
                    patch.clone(),
                    answer.map(JsonPatchOperation::to_json).collect(),
                );
            }
        }
    }
    let warnings = rehearsal.validation.iter().flat_map(ValidationOutcome::warnings);
    compare(
        "warnings",
        json!(expected.warnings),
        json!(warnings.collect::<Vec<_>>()),
    );
    let audits = rehearsal.findings(ValidationAction::Audit);
    let audits: Vec<_> = audits
        .map(|finding| format!("{}: {}", finding.policy, finding.reason))
        .collect();
    compare("audits", json!(expected.audits), json!(audits));
    let ignored: Vec<_> = rehearsal.ignored().map(ToString::to_string).collect();
    let is_ignored = |(expected, actual): (&String, &String)| actual.contains(expected.as_str());
    if ignored.len() != expected.ignored.len() || !expected.ignored.iter().zip(&ignored).all(is_ignored) {
        compare("ignored", json!(expected.ignored), json!(ignored));
    }
    found
}

fn or_null(message: &str) -> Value {
    match message {
        "" => Value::Null,
        message => message.into(),
    }
}

/// Formats the difference on one line. Objects are long: show a diff instead.
impl fmt::Display for CaseDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Value| match value {
            Value::Null => "nothing".to_owned(),
            value => value.to_string(),
        };
        write!(
            formatter,
            "{}: expected {}, not {}",
            self.field,
            shown(&self.expected),
            shown(&self.actual)
        )
    }
}
