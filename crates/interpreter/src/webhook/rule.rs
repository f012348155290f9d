//! What a webhook is asked.

use serde_json::Value;
use windlass_object::object;

use super::RuleWithOperations;
use crate::{Operation, customization::FieldProblems};

/// Anything.
pub(crate) const ANY: &str = "*";

/// A rule, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleMatcher {
    /// None for any; so for the others.
    operations: Option<Vec<Operation>>,
    api_groups: Option<Vec<String>>,
    api_versions: Option<Vec<String>>,
    pub(crate) kinds: Option<Vec<String>>,
}

// === impl RuleMatcher ===

impl RuleMatcher {
    /// Reads a rule. What is not an operation is never asked.
    pub(crate) fn of(rule: &RuleWithOperations) -> Self {
        let names = |items: &[String]| (!items.iter().any(|item| item == ANY)).then(|| items.to_vec());
        let operations = names(&rule.operations);
        Self {
            operations: operations
                .map(|operations| operations.iter().filter_map(|name| operation(name)).collect()),
            api_groups: names(&rule.api_groups),
            api_versions: names(&rule.api_versions),
            kinds: names(&rule.kinds),
        }
    }

    /// Whether an operation on an object is asked. Group, version and kind are the object's own, letter by letter.
    pub(crate) fn fits(&self, operation: Operation, object: &Value) -> bool {
        let (Some(api_version), Some(kind)) =
            (object::text(object, "/apiVersion"), object::text(object, "/kind"))
        else {
            return false;
        };
        let (group, version) = object::group_and_version(api_version);
        let has = |items: &Option<Vec<String>>, asked: &str| {
            items
                .as_ref()
                .is_none_or(|items| items.iter().any(|item| item == asked))
        };
        self.has_operation(operation)
            && has(&self.api_groups, group)
            && has(&self.api_versions, version)
            && has(&self.kinds, kind)
    }

    pub(crate) fn has_operation(&self, operation: Operation) -> bool {
        let operations = self.operations.as_ref();
        operations.is_none_or(|operations| operations.contains(&operation))
    }

    /// Whether both are for some object, whatever is asked about it.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let meet = |own: &Option<Vec<String>>, others: &Option<Vec<String>>| match (own, others) {
            (Some(own), Some(others)) => own.iter().any(|item| others.contains(item)),
            (Some(one), None) | (None, Some(one)) => !one.is_empty(),
            (None, None) => true,
        };
        meet(&self.kinds, &other.kinds)
            && meet(&self.api_groups, &other.api_groups)
            && meet(&self.api_versions, &other.api_versions)
    }
}

// === impl RuleWithOperations ===

impl RuleWithOperations {
    /// Notes what speaks against a rule (`validateRule` of Karmada's `pkg/webhook/configuration`).
    pub(super) fn check(&self, problems: &mut FieldProblems) {
        alone(problems, "operations", &self.operations);
        for (index, name) in self.operations.iter().enumerate() {
            if name != ANY && operation(name).is_none() {
                let known = Operation::ALL.map(Operation::name).join(", ");
                let message = format!("{name:?} is not an operation; use {ANY} or some of {known}");
                problems.note(format_args!("operations[{index}]"), message);
            }
        }
        alone(problems, "apiGroups", &self.api_groups);
        for (field, items) in [("apiVersions", &self.api_versions), ("kinds", &self.kinds)] {
            alone(problems, field, items);
            for (index, _) in items.iter().enumerate().filter(|(_, item)| item.is_empty()) {
                problems.note(format_args!("{field}[{index}]"), "must not be empty");
            }
        }
    }
}

/// A list must have something, and nothing beside `*`.
fn alone(problems: &mut FieldProblems, field: &str, items: &[String]) {
    if items.is_empty() {
        problems.note(field, format_args!("must not be empty; {ANY} is for any"));
    } else if items.len() > 1 && items.iter().any(|item| item == ANY) {
        problems.note(field, format_args!("must have nothing beside {ANY}"));
    }
}

/// An operation by its name, letter by letter, or by the one that Karmada's proposal had for it.
fn operation(name: &str) -> Option<Operation> {
    serde_json::from_value(name.into()).ok()
}
