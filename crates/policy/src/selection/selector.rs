//! Matches objects against the selectors of a policy.

use serde_json::Value;
use thiserror::Error;
use windlass_object::{label_selector, object};

use super::field_path::{LONGEST, field, scalar_text};
use crate::{
    AdmissionAttributes, PolicyKey,
    api::{FieldSelector, FieldSelectorRequirement, ResourceSelector, SelectorOperator},
    problem::PolicyProblems,
};

/// The selectors of a policy.
#[derive(Clone, Debug)]
pub(crate) struct SubjectMatcher {
    /// The only namespace whose objects match; empty for no such limit.
    namespace: String,
    selectors: Vec<ResourceSelector>,
    namespace_selector: Option<Value>,
}

/// Attributes of an object for selectors, read once for all policies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectedSubject<'a> {
    attributes: &'a AdmissionAttributes<'a>,
    kind: (&'a str, &'a str),
    namespace: &'a str,
    name: &'a str,
    labels: &'a Value,
}

/// It is unknown whether a policy selects an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("spec.namespaceSelector needs the labels of the Namespace {0}, which is unknown")]
pub struct SelectionError(String);

impl SubjectMatcher {
    /// Parses the selectors of a policy, and adds their problems.
    pub(crate) fn new(
        key: &PolicyKey,
        selectors: &[ResourceSelector],
        namespace_selector: Option<&Value>,
        problems: &mut PolicyProblems,
    ) -> Self {
        for (index, selector) in selectors.iter().enumerate() {
            problems.within(format!("resourceSelectors[{index}]"), |problems| {
                check(selector, problems);
                if ![key.namespace.as_str(), ""].contains(&selector.namespace.as_str())
                    && !key.namespace.is_empty()
                {
                    let message = format!(
                        "must be empty or {:?}: an OverridePolicy is for objects of its own namespace",
                        key.namespace
                    );
                    problems.note("namespace", message);
                }
            });
        }
        if let Some(selector) = namespace_selector {
            check_labels("namespaceSelector", selector, problems);
        }
        Self {
            namespace: key.namespace.clone(),
            selectors: selectors.to_vec(),
            namespace_selector: namespace_selector.cloned(),
        }
    }

    /// The selected apiVersions and kinds; `None` for all.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&str, &str)> {
        self.selectors
            .iter()
            .map(|selector| (selector.api_version.as_str(), selector.kind.as_str()))
    }

    /// Reports whether the policy selects an object.
    ///
    /// # Errors
    ///
    /// If that depends on labels of an unknown Namespace.
    pub(crate) fn matches(&self, subject: &SelectedSubject<'_>) -> Result<bool, SelectionError> {
        let is_inside = self.namespace.is_empty() || self.namespace == subject.namespace;
        let is_selected = || {
            let mut selectors = self.selectors.iter();
            self.selectors.is_empty() || selectors.any(|selector| subject.is_selected_by(selector))
        };
        if !is_inside || !is_selected() {
            return Ok(false);
        }
        self.is_for_namespace(subject)
    }

    fn is_for_namespace(&self, subject: &SelectedSubject<'_>) -> Result<bool, SelectionError> {
        let Some(selector) = &self.namespace_selector else {
            return Ok(true);
        };
        let attributes = subject.attributes;
        let namespace = match subject.namespace {
            _ if attributes.is_namespace() => attributes.subject(),
            "" => return Ok(true),
            name => attributes
                .namespace_object
                .ok_or_else(|| SelectionError(name.to_owned()))?,
        };
        Ok(label_selector::matches(selector, labels(namespace)))
    }
}

impl<'a> SelectedSubject<'a> {
    pub(crate) fn new(attributes: &'a AdmissionAttributes<'a>) -> Self {
        Self {
            attributes,
            kind: attributes.kind(),
            namespace: attributes.namespace(),
            name: attributes.name(),
            labels: labels(attributes.subject()),
        }
    }

    fn is_selected_by(&self, selector: &ResourceSelector) -> bool {
        let is_kind = self.kind == (selector.api_version.as_str(), selector.kind.as_str());
        let is_namespace = selector.namespace.is_empty() || selector.namespace == self.namespace;
        if !is_kind || !is_namespace {
            return false;
        }
        if !selector.name.is_empty() {
            return selector.name == self.name;
        }
        selects_labelled(selector, self.labels, self.attributes.subject())
    }
}

/// Adds the problems of a selector.
pub(crate) fn check(selector: &ResourceSelector, problems: &mut PolicyProblems) {
    for (name, value) in [("apiVersion", &selector.api_version), ("kind", &selector.kind)] {
        if value.contains('*') {
            problems.note(
                name,
                "must not be empty; an empty list of selectors selects all objects",
            );
        }
    }
    if let Some(labels) = &selector.label_selector {
        check_labels("labelSelector", labels, problems);
    }
    let Some(fields) = &selector.field_selector else {
        return;
    };
    let long = format!("must not be longer than {LONGEST} bytes");
    if fields.match_fields.keys().any(|path| path.len() > LONGEST) {
        problems.note("fieldSelector.matchFields", &long);
    }
    for (index, requirement) in fields.match_expressions.iter().enumerate() {
        if requirement.field.len() > LONGEST {
            problems.note(format!("fieldSelector.matchExpressions[{index}].field"), &long);
        }
    }
}

fn check_labels(name: &str, selector: &Value, problems: &mut PolicyProblems) {
    if let Err(error) = label_selector::check(selector) {
        let error = error.to_string();
        let (field, message) = error.split_once(": ").unwrap_or(("", &error));
        problems.note(format!("{name}{field}"), message);
    }
}

pub(super) fn labels(object: &Value) -> &Value {
    object::at(object, "/metadata/labels").unwrap_or(&Value::Null)
}

/// Reports whether an object has the selected labels and fields.
pub(crate) fn selects_content(selector: &ResourceSelector, object: &Value) -> bool {
    selects_labelled(selector, labels(object), object)
}

fn selects_labelled(selector: &ResourceSelector, labels: &Value, object: &Value) -> bool {
    let fits_labels = |selector| label_selector::matches(selector, labels);
    selector.label_selector.as_ref().is_none_or(fits_labels)
        && selector
            .field_selector
            .as_ref()
            .is_none_or(|selector| matches_fields(selector, object))
}

pub(super) fn matches_fields(selector: &FieldSelector, object: &Value) -> bool {
    let has = |(path, value): (&String, &String)| {
        field(object, path)
            .and_then(scalar_text)
            .is_some_and(|found| found == value.as_str())
    };
    selector.match_fields.iter().all(has)
        && selector
            .match_expressions
            .iter()
            .all(|requirement| holds(requirement, object))
}

fn holds(requirement: &FieldSelectorRequirement, object: &Value) -> bool {
    let found = field(object, &requirement.field);
    let is_listed = || {
        let Some(found) = found.and_then(scalar_text) else {
            return false;
        };
        let mut values = requirement.value.iter().chain(&requirement.values);
        values.any(|value| *value == found)
    };
    match requirement.operator {
        SelectorOperator::In => is_listed(),
        SelectorOperator::NotIn => !is_listed(),
        SelectorOperator::Exists => found.is_some(),
        SelectorOperator::DoesNotExist => found.is_none(),
    }
}
