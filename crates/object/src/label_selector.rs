//! Label selectors, by the rules of `LabelSelectorAsSelector` of k8s.io/apimachinery.

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{object, rfc1123};

/// Why a selector is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {problem}")]
pub struct LabelSelectorError {
    /// The field below the selector, with a leading dot; empty for the selector itself.
    path: String,
    problem: &'static str,
}

/// Why a text is not a selector.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{requirement:?}: {problem}")]
pub struct ParseSelectorError {
    /// The requirement that is invalid.
    requirement: String,
    problem: &'static str,
}

/// Parses a selector in kubectl's syntax, comma-separated: `key`, `!key`, `key=value`, `key!=value`, `key in
/// (a,b)` and `key notin (a,b)`.
///
/// # Errors
///
/// When the text is empty or has another form, or when a key or value is not valid for a label.
pub fn parse(text: &str) -> Result<Value, ParseSelectorError> {
    let mut labels = Map::new();
    let mut expressions = Vec::new();
    for requirement in requirements(text) {
        let requirement = requirement.trim();
        let error = |problem| ParseSelectorError {
            requirement: requirement.to_owned(),
            problem,
        };
        let (key, operator, values) = read(requirement).map_err(error)?;
        if !is_label_key(key) {
            return Err(error("must begin with a label key, or with ! and a label key"));
        }
        if !values.iter().all(|value| is_label_value(value)) {
            return Err(error(
                "values must be label values: at most 63 letters, digits, and inner dots, hyphens and underscores",
            ));
        }
        match values.as_slice() {
            // A map has one value per key; of two requirements for a key, both must match.
            [value] if operator == "In" && !labels.contains_key(key) => {
                labels.insert(key.to_owned(), (*value).into());
            }
            [] => expressions.push(json!({"key": key, "operator": operator})),
            _ => expressions.push(json!({"key": key, "operator": operator, "values": values})),
        }
    }
    let mut selector = Map::new();
    if !labels.is_empty() {
        selector.insert("matchLabels".to_owned(), labels.into());
    }
    if !expressions.is_empty() {
        selector.insert("matchExpressions".to_owned(), expressions.into());
    }
    Ok(selector.into())
}

/// Splits at the commas outside parentheses.
fn requirements(text: &str) -> impl Iterator<Item = &str> {
    let mut is_within = false;
    text.split(move |character| {
        match character {
            '(' => is_within = true,
            ')' => is_within = false,
            _ => {}
        }
        character == ',' && !is_within
    })
}

/// Returns the key, the operator in API notation, and the values of a requirement.
fn read(requirement: &str) -> Result<(&str, &'static str, Vec<&str>), &'static str> {
    if let Some(key) = requirement.strip_prefix('!') {
        return Ok((key.trim(), "DoesNotExist", Vec::new()));
    }
    if let Some((head, list)) = requirement.split_once('(') {
        let list = list.strip_suffix(')').ok_or("must end with )")?;
        let mut words = head.split_whitespace();
        let operator = match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => (key, "In"),
            (Some(key), Some("notin"), None) => (key, "NotIn"),
            _ => return Err("must be KEY in (VALUE,…) or KEY notin (VALUE,…)"),
        };
        return Ok((operator.0, operator.1, list.split(',').map(str::trim).collect()));
    }
    if let Some((key, value)) = requirement.split_once("!=") {
        return Ok((key.trim(), "NotIn", vec![value.trim()]));
    }
    if let Some((key, value)) = requirement.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        return Ok((key.trim(), "In", vec![value.trim()]));
    }
    Ok((requirement, "Exists", Vec::new()))
}

/// Reports whether `key` is a label name with an optional DNS prefix (`IsQualifiedName`).
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((domain, name)) => rfc1123::is_subdomain(domain) && is_label_name(name),
        None => is_label_name(key),
    }
}

/// Reports whether `name` consists of letters, digits, and inner dots, hyphens and underscores.
pub fn is_label_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = [name.bytes().next(), name.bytes().last()];
    name.len() <= rfc1123::LABEL_LENGTH
        && ends
            .iter()
            .all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && name.bytes().all(is_inner)
}

/// Reports whether `value` is empty or has the syntax of a label name.
fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_name(value)
}

/// Validates a selector as the API server does.
///
/// # Errors
///
/// When an operator is unknown, or its values are missing or not allowed.
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

/// Reports whether a selector matches an object with these labels. An empty selector matches everything; an
/// operator that the API server does not know matches nothing.
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
    fn every_requirement_must_match() {
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
    fn kubectl_syntax_is_parsed() {
        let expressions = |list: Value| json!({"matchExpressions": list});
        for (text, expected) in [
            ("a", expressions(json!([{"key": "a", "operator": "Exists"}]))),
            (
                "! a.b/c",
                expressions(json!([{"key": "a.b/c", "operator": "DoesNotExist"}])),
            ),
            ("a=b, c==d", json!({"matchLabels": {"a": "b", "c": "d"}})),
            ("a=", json!({"matchLabels": {"a": ""}})),
            (
                "a!=b",
                expressions(json!([{"key": "a", "operator": "NotIn", "values": ["b"]}])),
            ),
            (
                "a in (b, c),d notin (e)",
                expressions(json!([
                    {"key": "a", "operator": "In", "values": ["b", "c"]}, {"key": "d", "operator": "NotIn", "values": ["e"]},
                ])),
            ),
            (
                "a=b,a=c",
                json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["c"]}]}),
            ),
        ] {
            let selector = parse(text).unwrap();
            assert_eq!(selector, expected, "{text}");
            assert_eq!(check(&selector), Ok(()), "{text}");
        }
    }

    #[test]
    fn an_invalid_selector_is_reported_with_its_position() {
        for (text, requirement) in [
            ("", ""),
            ("a,", ""),
            ("a=b,c d", "c d"),
            ("a in b", "a in b"),
            ("a in (b", "a in (b"),
            ("a near (b)", "a near (b)"),
            ("in (b)", "in (b)"),
            ("a=-", "a=-"),
            ("a=b=c", "a=b=c"),
            ("A.B/c", "A.B/c"),
            ("a/b/c=d", "a/b/c=d"),
            ("=a", "=a"),
            ("a)(b", "a)(b"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{requirement:?}: ")),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn invalid_selectors_are_rejected_as_by_the_api_server() {
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
