//! Constant values in a policy.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A value of one of eight types. If several are set, the first applies, in the order of the fields below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConstantValue {
    /// Text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// An integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    /// A decimal number, in quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float: Option<String>,
    /// true or false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    /// A list of strings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub string_slice: Vec<String>,
    /// A list of integers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub integer_slice: Vec<i64>,
    /// A list of decimal numbers, each in quotes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub float_slice: Vec<String>,
    /// Strings by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub string_map: BTreeMap<String, String>,
}

/// An integer or string, as Kubernetes uses for ports, percentages and quantities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// An integer.
    Int(i64),
    /// Text.
    String(String),
}

impl JsonSchema for IntOrString {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IntOrString".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true })
    }
}
