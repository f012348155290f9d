//! Rules in CEL, with the names that ValidatingAdmissionPolicy and MutatingAdmissionPolicy use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What has to hold for a request before the rules of a policy are looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// What it is called in messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// A CEL expression that is true or false. It knows object, oldObject, request and namespaceObject.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
}

/// A value that later expressions use as `variables.NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelVariable {
    /// Its name, a CEL identifier.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// What it is. It knows the variables before it.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
}

/// What must hold for an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelValidation {
    /// A CEL expression that is true where nothing is wrong.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// What is said where it is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A CEL expression for what is said where it is false; it counts before message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message_expression: Option<String>,
}

/// Expressions that must be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelValidationRule {
    /// Values for the expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Vec<CelVariable>,
    /// What must hold.
    #[schemars(length(min = 1, max = 64))]
    pub validations: Vec<CelValidation>,
}

/// An expression for patches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelOverride {
    /// Values for the expression.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Vec<CelVariable>,
    /// A CEL expression for a list of operations, each with op, path and, unless it removes, value.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
}
