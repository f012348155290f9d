//! Selectors of objects, for policies and references.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schemas::{label_selector, rules};

/// A selector of objects of one kind; an object must match all fields that are set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion", "kind"]))]
pub struct ResourceSelector {
    /// The apiVersion, for example apps/v1.
    #[schemars(length(min = 1))]
    pub api_version: String,
    /// The kind, for example Deployment.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// The namespace. Defaults to that of the policy, or to any if the policy has none; in a reference, to
    /// that of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name; empty means any. If it is set, labelSelector and fieldSelector are ignored.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Selects objects by their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub label_selector: Option<Value>,
    /// Selects objects by the values of their fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<FieldSelector>,
}

/// Conditions on fields of an object, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldSelector {
    /// Fields with required values, for example `spec.nodeName: a`. Numbers and booleans are compared as
    /// text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_fields: BTreeMap<String, String>,
    /// Requirements for fields, all of which an object must meet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<FieldSelectorRequirement>,
}

/// An expression for a field of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    ("!(self.operator in ['In', 'NotIn']) || has(self.value) || has(self.values)", "In and NotIn need value"),
    ("self.operator in ['In', 'NotIn'] || !has(self.value) && !has(self.values)", "Exists and DoesNotExist take no value"),
])))]
pub struct FieldSelectorRequirement {
    /// The full path of the field, for example `metadata.annotations.example.com/owner`.
    #[schemars(length(min = 1))]
    pub field: String,
    /// In, NotIn, Exists or DoesNotExist.
    pub operator: SelectorOperator,
    /// The values, for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value: Vec<String>,
    /// A synonym of value, with the name that label selectors use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A comparison of a field with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum SelectorOperator {
    /// The field is one of the values.
    In,
    /// The field is none of the values, or does not exist.
    NotIn,
    /// The field exists.
    Exists,
    /// The field does not exist.
    DoesNotExist,
}
