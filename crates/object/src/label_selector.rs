//! Label selectors, by the rules of `LabelSelectorAsSelector` of k8s.io/apimachinery.

use serde_json::Value;
use thiserror::Error;

use crate::object;

/// Why nobody can select by a selector.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {problem}")]
pub struct LabelSelectorError {
    /// The field below the selector, with a dot before it; empty for the selector itself.
    path: String,
    problem: &'static str,
}

/// What is wrong with a selector that the API server would not take.
///
/// # Errors
///
/// When an operator is not known, or has values where it takes none, or none where it takes some.
pub fn check(selector: &Value) -> Result<(), LabelSelectorError> {
    let error = |path: &str, problem| LabelSelectorError {
        path: path.to_owned(),
        problem,
    };
    if !selector.is_object() {
        return Err(error("", "must be an object"));
    }
    match selector.get("matchLabels") {
        None | Some(Value::Null) => {}
        Some(Value::Object(labels)) if labels.values().all(Value::is_string) => {}
        Some(_) => return Err(error(".matchLabels", "must be a map of strings")),
    }
    match selector.get("matchExpressions") {
        None | Some(Value::Null | Value::Array(_)) => {}
        Some(_) => return Err(error(".matchExpressions", "must be a list")),
    }
    for (index, expression) in object::items(selector, "/matchExpressions").iter().enumerate() {
        let error = |field: &str, problem| error(&format!(".matchExpressions[{index}].{field}"), problem);
        if object::text(expression, "/key").is_none_or(str::is_empty) {
            return Err(error("key", "must be the name of a label"));
        }
        let values = object::items(expression, "/values").len();
        match object::text(expression, "/operator") {
            Some("In" | "NotIn") if values == 0 => return Err(error("values", "must not be empty")),
            Some("Exists" | "DoesNotExist") if values > 0 => return Err(error("values", "must be empty")),
            Some("In" | "NotIn" | "Exists" | "DoesNotExist") => {}
            _ => return Err(error("operator", "must be In, NotIn, Exists or DoesNotExist")),
        }
    }
    Ok(())
}

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

    #[test]
    fn a_selector_is_as_the_api_server_takes_it() {
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        for good in [
            json!({}),
            json!({"matchLabels": {"a": "b"}}),
            expression("In", &["b"]),
            expression("Exists", &[]),
        ] {
            assert_eq!(check(&good), Ok(()), "{good}");
        }
        for (wrong, expected) in [
            (json!([]), ": must be an object"),
            (
                json!({"matchLabels": {"a": 1}}),
                ".matchLabels: must be a map of strings",
            ),
            (
                json!({"matchExpressions": {}}),
                ".matchExpressions: must be a list",
            ),
            (
                json!({"matchExpressions": [{"operator": "Exists"}]}),
                ".matchExpressions[0].key: must be the name of a label",
            ),
            (
                expression("In", &[]),
                ".matchExpressions[0].values: must not be empty",
            ),
            (
                expression("Exists", &["b"]),
                ".matchExpressions[0].values: must be empty",
            ),
            (
                expression("bad-operator", &[]),
                ".matchExpressions[0].operator: must be In, NotIn, Exists or DoesNotExist",
            ),
        ] {
            assert_eq!(check(&wrong).unwrap_err().to_string(), expected);
        }
    }
}
