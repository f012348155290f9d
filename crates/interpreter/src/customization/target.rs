//! Targets: the objects that a customization selects, and their precedence.

use serde_json::Value;
use windlass_object::{label_selector, object};

use super::{CustomizationTarget, FieldProblems, InterpretationTarget};

/// Selects any apiVersion or kind.
const ANY: &str = "*";

/// A parsed target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TargetMatcher {
    /// `None` for any.
    pub(crate) api_version: Option<String>,
    /// `None` for any.
    pub(crate) kinds: Option<Vec<String>>,
    label_selector: Option<Value>,
    name: Option<String>,
    namespace: Option<String>,
}

/// How specific a target is: name, then labels, namespace, kind and apiVersion. The greater value has
/// precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TargetSpecificity {
    has_name: bool,
    has_label_selector: bool,
    has_namespace: bool,
    has_kind: bool,
    has_api_version: bool,
}

impl TargetMatcher {
    /// Reads the target of Karmada's kind.
    pub(crate) fn from_customization_target(
        target: &CustomizationTarget,
        problems: &mut FieldProblems,
    ) -> Self {
        for (name, value) in [("apiVersion", &target.api_version), ("kind", &target.kind)] {
            if value.is_empty() {
                problems.add(format!("target.{name}"), "must not be empty");
            }
        }
        Self {
            api_version: Some(target.api_version.clone()),
            kinds: Some(vec![target.kind.clone()]),
            label_selector: None,
            name: None,
            namespace: None,
        }
    }

    /// Reads a target of `spec.targets`.
    pub(crate) fn from_target(
        target: &InterpretationTarget,
        index: usize,
        problems: &mut FieldProblems,
    ) -> Self {
        let mut note = |name: &str, message: &str| problems.add(format!("targets[{index}]{name}"), message);
        if target.api_version.is_empty() {
            note(".apiVersion", "must not be empty; use * for any");
        }
        match (&target.kind, target.kinds.as_slice()) {
            (None, []) => note("", "must have kind or kinds"),
            (Some(_), [_, ..]) => note("", "must not have both kind and kinds"),
            (Some(kind), []) if kind.is_empty() => note(".kind", "must not be empty; use * for any"),
            (Some(_), []) => {}
            (None, kinds) => {
                for (position, kind) in kinds.iter().enumerate() {
                    let name = format!(".kinds[{position}]");
                    if kind.is_empty() {
                        note(&name, "must not be empty");
                    } else if kind == ANY && kinds.len() > 1 {
                        note(&name, "must be the only one if it is *");
                    } else if kinds[..position].contains(kind) {
                        note(&name, &format!("duplicate {kind:?}"));
                    }
                }
            }
        }
        for (name, value) in [(".name", &target.name), (".namespace", &target.namespace)] {
            if value.as_deref() == Some("") {
                note(name, "must not be empty");
            }
        }
        if let Some(Err(error)) = target.label_selector.as_ref().map(label_selector::check) {
            let error = error.to_string();
            let (field, message) = error.split_once(": ").unwrap_or(("", &error));
            note(&format!(".labelSelector{field}"), message);
        }
        let mut kinds: Vec<_> = target.kind.iter().chain(&target.kinds).cloned().collect();
        kinds.sort_unstable();
        Self {
            api_version: Some(target.api_version.clone()).filter(|api_version| api_version != ANY),
            kinds: Some(kinds).filter(|kinds| !kinds.iter().any(|kind| kind == ANY)),
            label_selector: target.label_selector.clone(),
            name: target.name.clone(),
            namespace: target.namespace.clone(),
        }
    }

    /// Reports whether the target may select objects of a kind.
    fn is_for(&self, api_version: &str, kind: &str) -> bool {
        self.api_version.as_ref().is_none_or(|own| own == api_version)
            && self
                .kinds
                .as_ref()
                .is_none_or(|kinds| kinds.iter().any(|own| own == kind))
    }

    /// Returns the specificity if the target selects an object.
    pub(crate) fn matches(&self, object: &Value) -> Option<TargetSpecificity> {
        let text = |pointer| object::text(object, pointer);
        let is_same =
            |own: &Option<String>, pointer| own.as_deref().is_none_or(|own| text(pointer) == Some(own));
        let labels = object.pointer("/metadata/labels").unwrap_or(&Value::Null);
        let fits = self.is_for(text("/apiVersion")?, text("/kind")?)
            && is_same(&self.name, "/metadata/name")
            && is_same(&self.namespace, "/metadata/namespace")
            && self
                .label_selector
                .as_ref()
                .is_none_or(|selector| label_selector::matches(selector, labels));
        fits.then(|| self.specificity())
    }

    /// Reports whether both targets select objects of one kind with the same specificity, name, labels and
    /// namespace, so that neither has precedence.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        let has_same_kind = match (&self.kinds, &other.kinds) {
            (None, None) => true,
            (Some(own), Some(others)) => own.iter().any(|kind| others.contains(kind)),
            _ => false,
        };
        has_same_kind
            && self.api_version == other.api_version
            && self.label_selector == other.label_selector
            && self.name == other.name
            && self.namespace == other.namespace
    }

    fn specificity(&self) -> TargetSpecificity {
        TargetSpecificity {
            has_name: self.name.is_some(),
            has_label_selector: self.label_selector.is_some(),
            has_namespace: self.namespace.is_some(),
            has_kind: self.kinds.is_some(),
            has_api_version: self.api_version.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(target: Value) -> (TargetMatcher, Vec<String>) {
        let target = serde_json::from_value(target).unwrap();
        let mut problems = FieldProblems::under("spec");
        let matcher = TargetMatcher::from_target(&target, 0, &mut problems);
        let problems = problems.into_problems();
        (matcher, problems.iter().map(ToString::to_string).collect())
    }

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "n", "labels": {"app": "x"}},
        })
    }

    #[test]
    fn a_target_matches_all_of_its_fields() {
        for (target, expected) in [
            (json!({"apiVersion": "apps/v1", "kind": "Deployment"}), true),
            (json!({"apiVersion": "apps/v1beta1", "kind": "Deployment"}), false),
            (json!({"apiVersion": "apps/v1", "kind": "deployment"}), false),
            (json!({"apiVersion": "*", "kind": "Deployment"}), true),
            (json!({"apiVersion": "apps/v1", "kind": "*"}), true),
            (json!({"apiVersion": "apps/v1", "kinds": ["*"]}), true),
            (
                json!({"apiVersion": "apps/v1", "kinds": ["StatefulSet", "Deployment"]}),
                true,
            ),
            (json!({"apiVersion": "apps/v1", "kinds": ["StatefulSet"]}), false),
            (json!({"apiVersion": "*", "kind": "*", "name": "a"}), true),
            (json!({"apiVersion": "*", "kind": "*", "name": "b"}), false),
            (json!({"apiVersion": "*", "kind": "*", "namespace": "n"}), true),
            (
                json!({"apiVersion": "*", "kind": "*", "name": "a", "namespace": "o"}),
                false,
            ),
            (
                json!({"apiVersion": "*", "kind": "*", "labelSelector": {"matchLabels": {"app": "x"}}}),
                true,
            ),
            (
                json!({"apiVersion": "*", "kind": "*", "labelSelector": {"matchLabels": {"app": "y"}}}),
                false,
            ),
        ] {
            let (matcher, problems) = read(target.clone());
            assert_eq!(problems, [""; 0], "{target}");
            assert_eq!(matcher.matches(&deployment()).is_some(), expected, "{target}");
            assert_eq!(matcher.matches(&json!({"kind": "Deployment"})), None);
        }
    }

    #[test]
    fn a_more_specific_target_is_greater() {
        let ascending = [
            json!({"apiVersion": "*", "kind": "*"}),
            json!({"apiVersion": "apps/v1", "kind": "*"}),
            json!({"apiVersion": "*", "kind": "Deployment"}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
            json!({"apiVersion": "*", "kind": "*", "namespace": "n"}),
            json!({"apiVersion": "*", "kind": "*", "labelSelector": {}}),
            json!({"apiVersion": "*", "kind": "*", "labelSelector": {}, "namespace": "n"}),
            json!({"apiVersion": "*", "kind": "*", "name": "a"}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "namespace": "n"}),
        ];
        let fits: Vec<_> = ascending
            .iter()
            .map(|target| read(target.clone()).0.matches(&deployment()))
            .collect();
        assert!(fits.iter().all(Option::is_some));
        assert!(fits.is_sorted_by(|less, more| less < more), "{fits:?}");
    }

    #[test]
    fn invalid_targets_are_reported() {
        for (target, expected) in [
            (
                json!({}),
                vec![
                    "spec.targets[0].apiVersion: must not be empty; use * for any",
                    "spec.targets[0]: must have kind or kinds",
                ],
            ),
            (
                json!({"apiVersion": "v1", "kind": ""}),
                vec!["spec.targets[0].kind: must not be empty; use * for any"],
            ),
            (
                json!({"apiVersion": "v1", "kind": "A", "kinds": ["B"]}),
                vec!["spec.targets[0]: must not have both kind and kinds"],
            ),
            (
                json!({"apiVersion": "v1", "kinds": ["A", "", "A", "*"], "name": "", "namespace": ""}),
                vec![
                    "spec.targets[0].kinds[1]: must not be empty",
                    "spec.targets[0].kinds[2]: duplicate \"A\"",
                    "spec.targets[0].kinds[3]: must be the only one if it is *",
                    "spec.targets[0].name: must not be empty",
                    "spec.targets[0].namespace: must not be empty",
                ],
            ),
            (
                json!({"apiVersion": "v1", "kind": "A", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
                vec![
                    "spec.targets[0].labelSelector.matchExpressions[0].operator: must be In, NotIn, Exists or DoesNotExist",
                ],
            ),
        ] {
            assert_eq!(read(target).1, expected);
        }
    }

    #[test]
    fn equally_specific_targets_conflict() {
        let target = json!({"apiVersion": "apps/v1", "kinds": ["Deployment", "StatefulSet"]});
        for (other, expected) in [
            (json!({"apiVersion": "apps/v1", "kind": "StatefulSet"}), true),
            (json!({"apiVersion": "apps/v1", "kind": "DaemonSet"}), false),
            (json!({"apiVersion": "apps/v1", "kind": "*"}), false),
            (json!({"apiVersion": "*", "kind": "Deployment"}), false),
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}),
                false,
            ),
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {}}),
                false,
            ),
        ] {
            assert_eq!(
                read(target.clone()).0.conflicts(&read(other.clone()).0),
                expected,
                "{other}"
            );
        }
    }
}
