//! Schemas of structural CustomResourceDefinitions, split into properties and their keywords.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};
use windlass_object::JsonPath;

/// The keywords of one property, and the schemas below it.
#[derive(Debug, Default)]
pub(super) struct Schema<'a> {
    /// The properties below.
    pub(super) children: BTreeMap<Descent<'a>, &'a Value>,
    /// The other keywords. Those with their default meaning are left out.
    pub(super) keywords: BTreeMap<&'a str, &'a Value>,
}

/// A step from a property to one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Descent<'a> {
    /// A field of an object.
    Property(&'a str),
    /// Each item of a list.
    Items,
    /// Each value of a map.
    AdditionalProperties,
}

/// The path from the root to a property. It is formatted only for reports.
#[derive(Clone, Copy, Debug)]
pub(super) enum SchemaPath<'a> {
    /// The object itself.
    Root,
    /// One step below another path.
    Below(&'a Self, Descent<'a>),
}

/// The keywords of `JSONSchemaProps` (`k8s.io/apiextensions-apiserver`,
/// `apis/apiextensions/v1/types_jsonschema.go`). An API server drops all others.
const KEYWORDS: &[&str] = &[
    "id",
    "$schema",
    "$ref",
    "description",
    "type",
    "format",
    "title",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "enum",
    "maxProperties",
    "minProperties",
    "required",
    "items",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "properties",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "externalDocs",
    "example",
    "nullable",
];

/// Documentation keywords.
pub(super) const DOCUMENTATION: &[&str] = &["description", "title", "example", "externalDocs"];

impl<'a> Schema<'a> {
    /// Splits a schema; `None` if it is neither an object nor `true`, which allows anything.
    pub(super) fn parse(value: &'a Value) -> Option<Self> {
        let mut schema = Self::default();
        let fields = match value {
            Value::Bool(true) => return Some(schema),
            Value::Object(fields) => fields,
            _ => return None,
        };
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let properties = properties.iter();
                    schema
                        .children
                        .extend(properties.map(|(name, value)| (Descent::Property(name), value)));
                }
                ("items", Value::Object(_)) => {
                    schema.children.insert(Descent::Items, value);
                }
                ("additionalProperties", Value::Object(_) | Value::Bool(true)) => {
                    schema.children.insert(Descent::AdditionalProperties, value);
                }
                (keyword, value) if is_known(keyword) && !has_default_meaning(keyword, value) => {
                    schema.keywords.insert(keyword, value);
                }
                _ => {}
            }
        }
        Some(schema)
    }
}

/// Reports whether an API server keeps the keyword; `x-kubernetes-` extensions of future releases count as
/// known.
fn is_known(keyword: &str) -> bool {
    KEYWORDS.contains(&keyword) || keyword.starts_with("x-kubernetes-")
}

/// Reports whether `value` means the same as the absence of the keyword. An API server does not distinguish
/// these.
fn has_default_meaning(keyword: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        _ if keyword == "default" => false,
        Value::Bool(value) => !value,
        Value::Array(items) => items.is_empty(),
        Value::String(value) => {
            value.is_empty()
                || matches!(
                    (keyword, value.as_str()),
                    ("x-kubernetes-list-type", "atomic") | ("x-kubernetes-map-type", "granular")
                )
        }
        _ => false,
    }
}

impl SchemaPath<'_> {
    fn json_path(&self) -> JsonPath {
        match self {
            Self::Root => JsonPath::root(),
            Self::Below(path, Descent::Property(name)) => path.json_path().field(name),
            Self::Below(path, Descent::Items) => path.json_path().field("items"),
            Self::Below(path, Descent::AdditionalProperties) => {
                path.json_path().field("additionalProperties")
            }
        }
    }
}

impl fmt::Display for SchemaPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "^{}", self.json_path())
    }
}

/// Removes differences without effect from the value of a keyword: documentation, the order of fields and
/// sets, and `1.0` instead of `1`.
pub(super) fn canonical(keyword: &str, value: &Value) -> Value {
    match (keyword, value) {
        ("properties" | "patternProperties" | "definitions", Value::Object(schemas)) => {
            sorted(schemas, |_, schema| Some(canonical_schema(schema)))
        }
        ("items" | "additionalProperties" | "additionalItems" | "not", _) => canonical_schema(value),
        ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => set(schemas, canonical_schema),
        ("required" | "enum" | "x-kubernetes-list-map-keys", Value::Array(items)) => set(items, normalized),
        ("x-kubernetes-validations", Value::Array(rules)) => set(rules, |rule| match rule {
            // Messages have no effect on validity.
            Value::Object(fields) => sorted(fields, |name, value| {
                (!matches!(name, "message" | "messageExpression")).then(|| normalized(value))
            }),
            rule => normalized(rule),
        }),
        _ => normalized(value),
    }
}

/// Applies [`canonical`] to a whole schema.
pub(super) fn canonical_schema(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return normalized(schema);
    };
    sorted(fields, |keyword, value| {
        let counts =
            is_known(keyword) && !DOCUMENTATION.contains(&keyword) && !has_default_meaning(keyword, value);
        counts.then(|| canonical(keyword, value))
    })
}

fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(fields) => sorted(fields, |_, value| Some(normalized(value))),
        Value::Array(items) => items.iter().map(normalized).collect(),
        Value::Number(number) => integer_value(number).map_or_else(|| value.clone(), Value::from),
        _ => value.clone(),
    }
}

/// Returns the integer value of a number with a zero fraction.
fn integer_value(number: &serde_json::Number) -> Option<i64> {
    /// Up to this limit every integer is exact as a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value = number.as_f64().filter(|_| number.is_f64())?;
    if value.fract() != 0.0 || value.abs() > EXACT {
        return None;
    }
    // Without its fraction it is an integer.
    format!("{value:.0}").parse().ok()
}

fn sorted(fields: &Map<String, Value>, change: impl Fn(&str, &Value) -> Option<Value>) -> Value {
    let fields: BTreeMap<&String, Value> = fields
        .iter()
        .filter_map(|(name, value)| Some((name, change(name, value)?)))
        .collect();
    fields
        .into_iter()
        .map(|(name, value)| (name.clone(), value))
        .collect()
}

fn set(items: &[Value], change: impl Fn(&Value) -> Value) -> Value {
    let items: BTreeMap<String, Value> = items
        .iter()
        .map(change)
        .map(|item| (item.to_string(), item))
        .collect();
    items.into_values().collect()
}
