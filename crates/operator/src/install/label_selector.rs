//! Label selectors, by the rules of `LabelSelectorAsSelector` of k8s.io/apimachinery.

use serde_json::Value;
use windlass_object::object;

/// Whether a selector matches an object with these labels. An empty one matches everything, and an operator that the API server
/// does not know nothing.
pub fn matches(selector: &Value, labels: &Value) -> bool {
    let label = |name: &str| labels.get(name);
    let matches_labels = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .all(|(name, value)| label(name) == Some(value));
    matches_labels
        && object::items(selector, "/matchExpressions")
            .iter()
            .all(|expression| {
                let found = label(object::text(expression, "/key").unwrap_or_default());
                let listed = found.is_some_and(|value| object::items(expression, "/values").contains(value));
                match object::text(expression, "/operator") {
                    Some("In") => listed,
                    Some("NotIn") => !listed,
                    Some("Exists") => found.is_some(),
                    Some("DoesNotExist") => found.is_none(),
                    _ => false,
                }
            })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_requirement_has_to_hold() {
        let labels = json!({"app": "a", "tier": "b"});
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "a"}}), true),
            (json!({"matchLabels": {"app": "a", "tier": "c"}}), false),
            (expression("app", "In", &["a", "c"]), true),
            (expression("app", "NotIn", &["a"]), false),
            (expression("other", "NotIn", &["a"]), true),
            (expression("app", "Exists", &[]), true),
            (expression("other", "DoesNotExist", &[]), true),
            (expression("app", "Near", &["a"]), false),
        ] {
            assert_eq!(matches(&selector, &labels), expected, "{selector}");
        }
    }
}
