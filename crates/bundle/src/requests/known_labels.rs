//! The known labels of a future object, and whether a selector can match them.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_object::object;

/// The labels of an object. `None` is an unknown value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownLabels(BTreeMap<String, Option<String>>);

impl KnownLabels {
    pub(super) fn from_object(labels: Option<&Value>) -> Self {
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        Self(
            labels
                .map(|(key, value)| (key.clone(), value.as_str().map(str::to_owned)))
                .collect(),
        )
    }

    /// Adds a label with an unknown value.
    pub(super) fn with_key(mut self, key: &str) -> Self {
        self.0.insert(key.to_owned(), None);
        self
    }

    /// Reports whether an object with these labels can match a selector, by the rules of
    /// `LabelSelectorAsSelector` of `k8s.io/apimachinery`. A missing or empty selector matches everything.
    pub(super) fn may_match(&self, selector: Option<&Value>) -> bool {
        let Some(selector) = selector else { return true };
        let desired = selector.get("matchLabels").and_then(Value::as_object);
        let equal = desired.into_iter().flatten().all(|(key, value)| {
            self.0
                .get(key)
                .is_some_and(|actual| actual.as_deref().is_none_or(|actual| value == actual))
        });
        equal
            && object::items(selector, "/matchExpressions")
                .iter()
                .all(|expression| self.may_fulfill(expression))
    }

    fn may_fulfill(&self, expression: &Value) -> bool {
        let actual = self.0.get(object::text(expression, "/key").unwrap_or_default());
        let listed = |actual: &String| {
            let values = object::items(expression, "/values");
            values.iter().any(|value| value == actual)
        };
        match object::text(expression, "/operator") {
            Some("In") => actual.is_some_and(|actual| actual.as_ref().is_none_or(listed)),
            Some("NotIn") => actual.is_none_or(|actual| actual.as_ref().is_none_or(|actual| !listed(actual))),
            Some("Exists") => actual.is_some(),
            Some("DoesNotExist") => actual.is_none(),
            // The API server rejects this operator.
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operator_is_evaluated() {
        let labels = KnownLabels::from_object(Some(&json!({"app": "a"}))).with_key("hash");
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "a"}}), true),
            (json!({"matchLabels": {"app": "b"}}), false),
            (json!({"matchLabels": {"other": "a"}}), false),
            (json!({"matchLabels": {"hash": "1"}}), true),
            (expression("app", "In", &["a", "b"]), true),
            (expression("app", "In", &["b"]), false),
            (expression("other", "In", &["b"]), false),
            (expression("hash", "In", &["b"]), true),
            (expression("app", "NotIn", &["a"]), false),
            (expression("app", "NotIn", &["b"]), true),
            (expression("other", "NotIn", &["b"]), true),
            (expression("app", "Exists", &[]), true),
            (expression("hash", "Exists", &[]), true),
            (expression("other", "Exists", &[]), false),
            (expression("app", "DoesNotExist", &[]), false),
            (expression("hash", "DoesNotExist", &[]), false),
            (expression("other", "DoesNotExist", &[]), true),
        ] {
            assert_eq!(labels.may_match(Some(&selector)), expected, "{selector}");
        }
        assert!(labels.may_match(None));
    }
}
