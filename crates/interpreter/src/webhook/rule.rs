//! Rules: the operations and objects that a webhook answers.

use serde_json::Value;
use windlass_object::object;

use super::RuleWithOperations;
use crate::{Operation, customization::FieldProblems};

/// Selects anything.
pub(crate) const ANY: &str = "*";

/// A parsed rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleMatcher {
    /// `None` for any; the same applies to the other fields.
    operations: Option<Vec<Operation>>,
    api_groups: Option<Vec<String>>,
    api_versions: Option<Vec<String>>,
    pub(crate) kinds: Option<Vec<String>>,
}

impl RuleMatcher {
    /// Parses a rule. Unknown operations are ignored.
    pub(crate) fn from_rule(rule: &RuleWithOperations) -> Self {
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

    /// Reports whether the rule selects an operation and object. Group, version and kind are compared
    /// exactly.
    pub(crate) fn matches(&self, operation: Operation, object: &Value) -> bool {
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

    /// Reports whether both rules can select the same object.
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

impl RuleWithOperations {
    /// Validates a rule (`validateRule` of Karmada's `pkg/webhook/configuration`).
    pub(super) fn check(&self, problems: &mut FieldProblems) {
        check_list(problems, "operations", &self.operations);
        for (index, name) in self.operations.iter().enumerate() {
            if name != ANY && operation(name).is_none() {
                let known = Operation::ALL.map(Operation::name).join(", ");
                let message = format!("{name:?} is not an operation; use {ANY} or some of {known}");
                problems.add(format_args!("operations[{index}]"), message);
            }
        }
        check_list(problems, "apiGroups", &self.api_groups);
        for (field, items) in [("apiVersions", &self.api_versions), ("kinds", &self.kinds)] {
            check_list(problems, field, items);
            for (index, _) in items.iter().enumerate().filter(|(_, item)| item.is_empty()) {
                problems.add(format_args!("{field}[{index}]"), "must not be empty");
            }
        }
    }
}

/// Checks that a list is not empty, and that `*` is its only item.
fn check_list(problems: &mut FieldProblems, field: &str, items: &[String]) {
    if items.is_empty() {
        problems.add(field, format_args!("must not be empty; use {ANY} for any"));
    } else if items.len() > 1 && items.iter().any(|item| item == ANY) {
        problems.add(field, format_args!("must not have other items besides {ANY}"));
    }
}

/// Parses an operation by its exact name, or by the one in Karmada's proposal.
fn operation(name: &str) -> Option<Operation> {
    serde_json::from_value(name.into()).ok()
}
