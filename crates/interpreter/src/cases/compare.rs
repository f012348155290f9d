//! Comparison of an answer with the expected one.

use std::fmt;

use serde_json::Value;
use windlass_object::{JsonPath, text::shortened};

use super::CaseResult;
use crate::quantity::Quantity;

/// A difference between the expected and the actual answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The path, for example `healthy` or `revised.spec.replicas`.
    pub path: JsonPath,
    /// The expected value, if any.
    pub expected: Option<Value>,
    /// The actual value, if any.
    pub actual: Option<Value>,
}

/// An expected value that matches anything.
const EXCLUDE: &str = "{{EXCLUDE}}";

/// The field whose values are compared as quantities: `1` equals `1000m`.
const QUANTITIES: &str = "resourceRequest";

/// Longer values are shortened in messages.
const LONGEST: usize = 200;

/// How strictly values are compared.
#[derive(Clone, Copy)]
enum Strictness {
    /// Absent and empty values differ.
    Exact,
    /// Absent and empty values are equal: the value's type omits empty fields.
    Typed,
}

/// Returns the differences between the expected value and a result.
pub(super) fn differences(expected: &Value, result: &CaseResult) -> Vec<Difference> {
    let path = JsonPath::from_fields(result.name);
    let mut found = Vec::new();
    match result.name {
        "dependencies" => {
            let key = |reference: &Value| {
                ["apiVersion", "kind", "namespace", "name"]
                    .map(|field| reference[field].as_str().unwrap_or_default().to_owned())
            };
            let (expected, actual) = (sort_by_key(expected, key), sort_by_key(&result.value, key));
            compare(&expected, &actual, &path, Strictness::Typed, &mut found);
        }
        "components" => {
            let key = |component: &Value| component["name"].as_str().unwrap_or_default().to_owned();
            let (expected, actual) = (sort_by_key(expected, key), sort_by_key(&result.value, key));
            compare(&expected, &actual, &path, Strictness::Typed, &mut found);
        }
        "requires" => compare(expected, &result.value, &path, Strictness::Typed, &mut found),
        _ => compare(expected, &result.value, &path, Strictness::Exact, &mut found),
    }
    found
}

/// Sorts a list whose order does not matter.
fn sort_by_key<K: Ord>(list: &Value, key: impl Fn(&Value) -> K) -> Value {
    let mut list = list.clone();
    if let Some(items) = list.as_array_mut() {
        items.sort_by_key(|item| key(item));
    }
    list
}

fn compare(
    expected: &Value,
    actual: &Value,
    path: &JsonPath,
    strictness: Strictness,
    found: &mut Vec<Difference>,
) {
    match (expected, actual) {
        (Value::String(mark), _) if mark == EXCLUDE => {}
        (Value::Object(expected), Value::Object(actual)) => {
            let missing = actual.keys().filter(|name| !expected.contains_key(*name));
            for name in expected.keys().chain(missing) {
                let path = path.field(name);
                match (expected.get(name), actual.get(name)) {
                    (Some(expected), Some(actual)) if name == QUANTITIES => {
                        compare_quantities(expected, actual, &path, found);
                    }
                    (Some(expected), Some(actual)) => compare(expected, actual, &path, strictness, found),
                    (Some(Value::String(mark)), None) if mark == EXCLUDE => {}
                    (expected, actual) => {
                        let is_nothing = [expected, actual].into_iter().flatten().all(is_empty);
                        if !(is_nothing && matches!(strictness, Strictness::Typed)) {
                            found.push(Difference::new(&path, expected, actual));
                        }
                    }
                }
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            for index in 0..expected.len().max(actual.len()) {
                let path = path.item(index);
                match (expected.get(index), actual.get(index)) {
                    (Some(expected), Some(actual)) => compare(expected, actual, &path, strictness, found),
                    (expected, actual) => found.push(Difference::new(&path, expected, actual)),
                }
            }
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => {}
        (expected, actual) => {
            let is_nothing = is_empty(expected) && is_empty(actual);
            if expected != actual && !(is_nothing && matches!(strictness, Strictness::Typed)) {
                found.push(Difference::new(path, Some(expected), Some(actual)));
            }
        }
    }
}

fn compare_quantities(expected: &Value, actual: &Value, path: &JsonPath, found: &mut Vec<Difference>) {
    let (Value::Object(expected), Value::Object(actual)) = (expected, actual) else {
        return compare(expected, actual, path, Strictness::Typed, found);
    };
    let quantity = |value: &Value| match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    };
    let missing = actual.keys().filter(|name| !expected.contains_key(*name));
    for name in expected.keys().chain(missing) {
        let (expected, actual) = (expected.get(name), actual.get(name));
        if expected.and_then(quantity) != actual.and_then(quantity) || expected.is_none() != actual.is_none()
        {
            found.push(Difference::new(&path.field(name), expected, actual));
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

impl Difference {
    fn new(path: &JsonPath, expected: Option<&Value>, actual: Option<&Value>) -> Self {
        Self {
            path: path.clone(),
            expected: expected.cloned(),
            actual: actual.cloned(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| {
            let value = value.as_ref();
            value.map_or_else(
                || "nothing".to_owned(),
                |value| shortened(value.to_string(), LONGEST),
            )
        };
        write!(
            formatter,
            "{}: expected {}, not {}",
            self.path.to_string().trim_start_matches('.'),
            shown(&self.expected),
            shown(&self.actual)
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn difference_texts(name: &'static str, expected: Value, value: Value) -> Vec<String> {
        let found = differences(&expected, &CaseResult { name, value });
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equivalent_values_do_not_differ() {
        for (name, expected, actual) in [
            ("replica", json!(1), json!(1.0)),
            (
                "retained",
                json!({"a": "{{EXCLUDE}}", "b": 1}),
                json!({"a": {"c": 1}, "b": 1}),
            ),
            ("retained", json!({"a": "{{EXCLUDE}}", "b": 1}), json!({"b": 1})),
            ("requires", json!(null), json!(null)),
            ("requires", json!(null), json!({})),
            (
                "requires",
                json!({"resourceRequest": {"cpu": "1000m", "memory": "1Ki"}}),
                json!({"resourceRequest": {"cpu": 1, "memory": "1024"}, "nodeClaim": {"tolerations": []}}),
            ),
            (
                "dependencies",
                json!([{"apiVersion": "v1", "kind": "Secret", "name": "b"}, {"apiVersion": "v1", "kind": "Secret", "name": "a"}]),
                json!([{"apiVersion": "v1", "kind": "Secret", "name": "a"}, {"apiVersion": "v1", "kind": "Secret", "name": "b"}]),
            ),
            (
                "components",
                json!([{"name": "b", "replicas": 1}, {"name": "a", "replicas": 2}]),
                json!([{"name": "a", "replicas": 2}, {"name": "b", "replicas": 1}]),
            ),
        ] {
            assert_eq!(difference_texts(name, expected, actual), [""; 0]);
        }
    }

    #[test]
    fn every_difference_has_its_path() {
        for (name, expected, actual, said) in [
            (
                "healthy",
                json!(true),
                json!(false),
                &["healthy: expected true, not false"][..],
            ),
            (
                "retained",
                json!({"spec": {"a": 1, "l": [1, 2], "e": {}}}),
                json!({"spec": {"a": "1", "l": [1, 3, 4], "m": 1}}),
                &[
                    "retained.spec.a: expected 1, not \"1\"",
                    "retained.spec.l[1]: expected 2, not 3",
                    "retained.spec.l[2]: expected nothing, not 4",
                    "retained.spec.e: expected {}, not nothing",
                    "retained.spec.m: expected nothing, not 1",
                ],
            ),
            (
                "requires",
                json!({"resourceRequest": {"cpu": "1", "memory": "1Gi"}}),
                json!({"resourceRequest": {"cpu": "1001m", "memory": "1Gi"}}),
                &["requires.resourceRequest.cpu: expected \"1\", not \"1001m\""],
            ),
            (
                "status",
                json!({"a": []}),
                json!({}),
                &["status.a: expected [], not nothing"],
            ),
        ] {
            assert_eq!(difference_texts(name, expected, actual), said);
        }
    }
}
