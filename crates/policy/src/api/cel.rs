//! Rules in CEL, with the field names of ValidatingAdmissionPolicy and MutatingAdmissionPolicy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition that a request must meet before the rules of a policy are evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// The name of the condition in error messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// A CEL expression that yields a boolean, with the variables object, oldObject, request and
    /// namespaceObject.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
}

/// A value that later expressions can use as `variables.NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelVariable {
    /// The name, a CEL identifier.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// A CEL expression for the value; it can use earlier variables.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
}

/// A condition that an object must meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelValidation {
    /// A CEL expression that yields true for a valid object.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// The message if it yields false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A CEL expression for the message if it yields false; takes precedence over message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message_expression: Option<String>,
}

/// Expressions that must yield true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelValidationRule {
    /// Variables for the expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Vec<CelVariable>,
    /// Expressions that must all yield true.
    #[schemars(length(min = 1, max = 64))]
    pub validations: Vec<CelValidation>,
}

/// An expression that yields patches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelOverride {
    /// Variables for the expression.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Vec<CelVariable>,
    /// A CEL expression that yields a list of operations, each with op, path and, except for remove, value.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
}
