//! Explains why an object does not match a selector.

use serde_json::{Value, json};
use windlass_object::{label_selector, object, text::shortened};

use super::{
    field_path::{field, scalar_text},
    selector::{labels, matches_fields},
};
use crate::{
    AdmissionAttributes,
    api::{FieldSelector, ResourceSelector, SelectorOperator},
};

/// Longer values are truncated.
const LONGEST: usize = 100;

/// Returns the first condition of a selector that an object does not meet; `None` if it matches.
pub(crate) fn mismatch(selector: &ResourceSelector, attributes: &AdmissionAttributes<'_>) -> Option<String> {
    let (api_version, kind) = attributes.kind();
    let differs = |field: &str, found: &str, wanted: &str| {
        (found != wanted).then(|| format!("{field} is {}, not {wanted}", text(found)))
    };
    let of_name = || differs("name", attributes.name(), &selector.name);
    let of_content = || {
        let subject = attributes.subject();
        let of_labels = selector.label_selector.as_ref();
        let of_labels = of_labels
            .and_then(|labels| label_mismatch(labels, subject))
            .map(|mismatch| format!("labelSelector: {mismatch}"));
        let of_fields = || selector.field_selector.as_ref();
        of_labels.or_else(|| {
            let mismatch = of_fields().and_then(|fields| field_mismatch(fields, subject))?;
            Some(format!("fieldSelector: {mismatch}"))
        })
    };
    differs("apiVersion", api_version, &selector.api_version)
        .or_else(|| differs("kind", kind, &selector.kind))
        .or_else(|| match selector.namespace.as_str() {
            "" => None,
            namespace => differs("namespace", attributes.namespace(), namespace),
        })
        .or_else(|| match selector.name.as_str() {
            "" => of_content(),
            _ => of_name(),
        })
}

/// Returns the first requirement of a LabelSelector that the labels of an object do not meet.
pub(crate) fn label_mismatch(selector: &Value, object: &Value) -> Option<String> {
    let labels = labels(object);
    let found = |key: &str| labels.get(key).and_then(Value::as_str);
    let matched = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in matched.into_iter().flatten() {
        if !label_selector::matches(&json!({"matchLabels": {key: value}}), labels) {
            let wanted = value.as_str().unwrap_or_default();
            return Some(format!(
                "{key} is {}, not {}",
                or_missing(found(key)),
                text(wanted)
            ));
        }
    }
    for expression in object::items(selector, "/matchExpressions") {
        if !label_selector::matches(&json!({ "matchExpressions": [expression] }), labels) {
            let part = |pointer| object::text(expression, pointer).unwrap_or_default();
            let values = object::items(expression, "/values").iter();
            let values = values.filter_map(Value::as_str);
            let wanted = requirement(part("/key"), part("/operator"), values);
            return Some(format!("{wanted}: it is {}", or_missing(found(part("/key")))));
        }
    }
    None
}

fn field_mismatch(selector: &FieldSelector, object: &Value) -> Option<String> {
    let found = |path: &str| {
        field(object, path).map(|value| scalar_text(value).unwrap_or_else(|| value.to_string().into()))
    };
    for (path, value) in &selector.match_fields {
        let alone = FieldSelector {
            match_fields: [(path.clone(), value.clone())].into(),
            match_expressions: Vec::new(),
        };
        if !matches_fields(&alone, object) {
            let found = found(path);
            return Some(format!(
                "{path} is {}, not {}",
                or_missing(found.as_deref()),
                text(value)
            ));
        }
    }
    for expression in &selector.match_expressions {
        let alone = FieldSelector {
            match_expressions: vec![expression.clone()],
            ..FieldSelector::default()
        };
        if !matches_fields(&alone, object) {
            let values = expression.value.iter().chain(&expression.values);
            let operator = match expression.operator {
                SelectorOperator::In => "In",
                SelectorOperator::NotIn => "NotIn",
                SelectorOperator::Exists => "Exists",
                SelectorOperator::DoesNotExist => "DoesNotExist",
            };
            let wanted = requirement(&expression.field, operator, values.map(String::as_str));
            let found = found(&expression.field);
            return Some(format!("{wanted}: it is {}", or_missing(found.as_deref())));
        }
    }
    None
}

fn requirement<'a>(key: &str, operator: &str, values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<_> = values.collect();
    match values.as_slice() {
        [] => format!("{key} {operator}"),
        values => format!("{key} {operator} [{}]", shortened(values.join(", "), LONGEST)),
    }
}

fn or_missing(found: Option<&str>) -> String {
    found.map_or_else(|| "missing".to_owned(), text)
}

fn text(found: &str) -> String {
    match found {
        "" => "empty".to_owned(),
        found => shortened(found.to_owned(), LONGEST),
    }
}
