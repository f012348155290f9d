//! Label selectors.

use serde_json::Value;

/// Reports whether a `LabelSelector` selects an object with these labels. An absent or empty selector selects
/// everything.
pub fn matches(selector: &Value, labels: &Value) -> bool {
    let value = |key: &str| labels.get(key).and_then(Value::as_str);
    let equal = selector["matchLabels"]
        .as_object()
        .is_none_or(|wanted| wanted.iter().all(|(key, wanted)| value(key) == wanted.as_str()));
    let expressions = selector["matchExpressions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    equal
        && expressions.iter().all(|expression| {
            let actual = value(expression["key"].as_str().unwrap_or_default());
            let listed = || {
                let values = expression["values"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                actual.is_some_and(|actual| values.iter().any(|value| value == actual))
            };
            match expression["operator"].as_str() {
                Some("In") => listed(),
                Some("NotIn") => !listed(),
                Some("Exists") => actual.is_some(),
                Some("DoesNotExist") => actual.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operator_selects_as_documented() {
        let labels = json!({"a": "1"});
        for (selector, expected) in [
            (json!(null), true),
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}),
                false,
            ),
        ] {
            assert_eq!(matches(&selector, &labels), expected, "{selector}");
        }
    }
}
