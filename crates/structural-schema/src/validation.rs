//! Validation by a structural schema, in the words of kube-apiserver (kube-openapi's validator).

use std::collections::{BTreeSet, HashMap};

use regex::Regex;
use serde_json::{Value, json};

use crate::{FieldError, ListType, Violation};

/// The compiled patterns of a schema. Invalid patterns are left out and match everything.
pub(super) struct Patterns(HashMap<String, Regex>);

impl Patterns {
    /// Compiles every string in `schema` that may be a pattern.
    pub(super) fn compile(schema: &Value) -> Self {
        let mut patterns = Self(HashMap::new());
        patterns.collect(schema);
        patterns
    }

    fn collect(&mut self, schema: &Value) {
        match schema {
            Value::Object(fields) => {
                if let Some(pattern) = schema["pattern"].as_str()
                    && let Ok(compiled) = Regex::new(pattern)
                {
                    self.0.insert(pattern.to_owned(), compiled);
                }
                fields.values().for_each(|field| self.collect(field));
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    fn fits(&self, pattern: &str, text: &str) -> bool {
        self.0.get(pattern).is_none_or(|pattern| pattern.is_match(text))
    }
}

/// Returns the errors of a whole object. Values that have not changed since `old` are ignored.
pub(super) fn validate(
    schema: &Value,
    patterns: &Patterns,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(schema, patterns, object, old, "", &mut errors);
    errors
}

fn check(
    schema: &Value,
    patterns: &Patterns,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if old == Some(value) {
        return;
    }
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if !check_type(schema, value, path, errors) {
        return;
    }
    check_enum(schema, value, path, errors);
    match value {
        Value::String(text) => check_string(schema, patterns, text, path, errors),
        Value::Number(_) => check_number(schema, value, path, errors),
        Value::Array(items) => check_list(schema, patterns, items, old, path, errors),
        Value::Object(_) => check_object(schema, patterns, value, old, path, errors),
        _ => {}
    }
    check_combinations(schema, patterns, value, path, errors);
}

/// Returns the schema type of a value; integers that are written as `1.0` count as integers.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|n| n.fract() != 0.0) => {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) -> bool {
    let actual = type_of(value);
    if schema["x-kubernetes-int-or-string"] == true {
        if matches!(actual, "integer" | "string") {
            return true;
        }
        errors.push(type_error(path, "integer,string", actual));
        return false;
    }
    let Some(desired) = schema["type"].as_str() else {
        return true;
    };
    if desired == actual || (desired == "number" && actual == "integer") {
        return true;
    }
    errors.push(type_error(path, desired, actual));
    false
}

fn type_error(path: &str, desired: &str, actual: &str) -> FieldError {
    let detail = format!("{path} in body must be of type {desired}: {actual:?}");
    FieldError::new(path, Violation::TypeInvalid(json!(actual)), detail)
}

fn check_enum(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(allowed) = schema["enum"].as_array() else {
        return;
    };
    if !allowed.contains(value) {
        let list: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let detail = format!("supported values: {}", list.join(", "));
        errors.push(FieldError::new(
            path,
            Violation::Unsupported(value.clone()),
            detail,
        ));
    }
}

fn check_string(schema: &Value, patterns: &Patterns, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    let length = text.chars().count() as u64;
    let mut invalid =
        |detail: String| errors.push(FieldError::new(path, Violation::Invalid(json!(text)), detail));
    if let Some(minimum) = schema["minLength"].as_u64().filter(|minimum| length < *minimum) {
        invalid(format!("{path} in body should be at least {minimum} chars long"));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && !patterns.fits(pattern, text)
    {
        invalid(format!("{path} in body should match '{pattern}'"));
    }
    if schema["format"] == "date-time" && text.parse::<jiff::Timestamp>().is_err() {
        invalid(format!("{path} in body must be of type date-time: {text:?}"));
    }
    if let Some(maximum) = schema["maxLength"].as_u64().filter(|maximum| length > *maximum) {
        errors.push(FieldError::new(
            path,
            Violation::TooLong,
            format!("may not be more than {maximum} bytes"),
        ));
    }
}

fn check_number(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(number) = value.as_f64() else { return };
    let mut invalid = |detail: String| {
        errors.push(FieldError::new(
            path,
            Violation::Invalid(value.clone()),
            format!("{path} in body {detail}"),
        ));
    };
    if let Some(minimum) = schema["minimum"].as_f64() {
        let exclusive = schema["exclusiveMinimum"] == true;
        if number < minimum || (exclusive && number <= minimum) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            invalid(format!("should be greater than{or_equal} {}", schema["minimum"]));
        }
    }
    if let Some(maximum) = schema["maximum"].as_f64() {
        let exclusive = schema["exclusiveMaximum"] == true;
        if number > maximum || (exclusive && number >= maximum) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            invalid(format!("should be less than{or_equal} {}", schema["maximum"]));
        }
    }
    if let Some(factor) = schema["multipleOf"].as_f64()
        && factor > 0.0
        && (number / factor).fract() != 0.0
    {
        invalid(format!("should be a multiple of {factor}"));
    }
}

fn check_list(
    schema: &Value,
    patterns: &Patterns,
    items: &[Value],
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    check_item_count(schema, items, path, errors);
    let list_type = ListType::from_schema(schema);
    let identity_of = |item: &Value| identity(item, &list_type, &schema["items"]);
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(identity) = identity_of(item)
            && !seen.insert(identity.to_string())
        {
            errors.push(FieldError::new(
                format!("{path}[{index}]"),
                Violation::Duplicate(identity),
                "",
            ));
        }
    }
    let old_items: Vec<_> = old
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|old| Some((identity_of(old)?, old)))
        .collect();
    for (index, item) in items.iter().enumerate() {
        let before = identity_of(item).and_then(|identity| {
            let same = old_items.iter().find(|(known, _)| *known == identity);
            same.map(|(_, old)| *old)
        });
        let path = format!("{path}[{index}]");
        check(&schema["items"], patterns, item, before, &path, errors);
    }
}

fn check_item_count(schema: &Value, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let count = items.len() as u64;
    if let Some(minimum) = schema["minItems"].as_u64().filter(|minimum| count < *minimum) {
        let detail = format!("{path} in body should have at least {minimum} items");
        errors.push(FieldError::new(path, Violation::Invalid(json!(count)), detail));
    }
    if let Some(maximum) = schema["maxItems"].as_u64().filter(|maximum| count > *maximum) {
        let detail = format!("must have at most {maximum} items");
        errors.push(FieldError::new(path, Violation::TooMany(items.len()), detail));
    }
}

/// Returns what identifies an item in its list and in the old list: the item itself in a set, its keys in a
/// map. Items of an atomic list have no identity.
fn identity(item: &Value, list_type: &ListType, schema: &Value) -> Option<Value> {
    match list_type {
        ListType::Atomic => None,
        ListType::Set => Some(item.clone()),
        ListType::Map(keys) => Some(key_values(item, keys, schema)),
    }
}

/// Returns the keys of an item of a map list.
fn key_values(item: &Value, keys: &[String], schema: &Value) -> Value {
    keys.iter()
        .map(|key| {
            let value = item.get(key).or_else(|| schema["properties"][key].get("default"));
            (key.clone(), value.cloned().unwrap_or_default())
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn check_object(
    schema: &Value,
    patterns: &Patterns,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(fields) = value.as_object() else { return };
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    for required in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !fields.contains_key(required) {
            errors.push(FieldError::new(below(required), Violation::Required, ""));
        }
    }
    let count = fields.len() as u64;
    if let Some(minimum) = schema["minProperties"]
        .as_u64()
        .filter(|minimum| count < *minimum)
    {
        let detail = format!("{path} in body should have at least {minimum} properties");
        errors.push(FieldError::new(path, Violation::Invalid(json!(count)), detail));
    }
    if let Some(maximum) = schema["maxProperties"]
        .as_u64()
        .filter(|maximum| count > *maximum)
    {
        let detail = format!("must have at most {maximum} properties");
        errors.push(FieldError::new(path, Violation::TooMany(fields.len()), detail));
    }
    for (name, field) in fields {
        let before = old.and_then(|old| old.get(name));
        let schema = match schema["properties"].get(name) {
            Some(property) => property,
            None if schema["additionalProperties"].is_object() => &schema["additionalProperties"],
            None => continue,
        };
        check(schema, patterns, field, before, &below(name), errors);
    }
}

fn check_combinations(
    schema: &Value,
    patterns: &Patterns,
    value: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let fits = |schema: &Value| validate(schema, patterns, value, None).is_empty();
    let list = |name: &str| schema[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut invalid = |detail: &str| {
        let shown = if value.is_object() || value.is_array() {
            json!("")
        } else {
            value.clone()
        };
        let detail = format!("{path:?} {detail}");
        errors.push(FieldError::new(path, Violation::Invalid(shown), detail));
    };
    if !list("allOf").iter().all(fits) {
        invalid("must validate all the schemas (allOf)");
    }
    if !list("anyOf").is_empty() && !list("anyOf").iter().any(fits) {
        invalid("must validate at least one schema (anyOf)");
    }
    if !list("oneOf").is_empty() && list("oneOf").iter().filter(|schema| fits(schema)).count() != 1 {
        invalid("must validate one and only one schema (oneOf)");
    }
    if schema["not"].is_object() && fits(&schema["not"]) {
        invalid("must not validate the schema (not)");
    }
}
