//! Which objects a policy is about, or a reference means.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schemas::{label_selector, rules};

/// Objects of one kind: those that fit in all that is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion", "kind"]))]
pub struct ResourceSelector {
    /// Their apiVersion, for example apps/v1.
    #[schemars(length(min = 1))]
    pub api_version: String,
    /// Their kind, for example Deployment.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Their namespace; empty for that of the policy, or for any where the policy has none. In a reference empty for that of the
    /// object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Their name; empty for any. Where it is given, labelSelector and fieldSelector are not looked at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What their labels fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub label_selector: Option<Value>,
    /// What their fields fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<FieldSelector>,
}

/// What fields of objects are. All of it has to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldSelector {
    /// Fields that have a value, for example `spec.nodeName: a`. A number or a boolean is compared by how it is written.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_fields: BTreeMap<String, String>,
    /// Expressions that hold for fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<FieldSelectorRequirement>,
}

/// What a field of objects is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    ("!(self.operator in ['In', 'NotIn']) || has(self.value) || has(self.values)", "In and NotIn need value"),
    ("self.operator in ['In', 'NotIn'] || !has(self.value) && !has(self.values)", "Exists and DoesNotExist take no value"),
])))]
pub struct FieldSelectorRequirement {
    /// The whole path of the field, for example `metadata.annotations.example.com/owner`.
    #[schemars(length(min = 1))]
    pub field: String,
    /// In, NotIn, Exists or DoesNotExist.
    pub operator: SelectorOperator,
    /// Values of the field, for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value: Vec<String>,
    /// The same as value, under the name that label selectors have for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a field and values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum SelectorOperator {
    /// It is one of the values.
    In,
    /// It is none of the values, or is not there.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}
