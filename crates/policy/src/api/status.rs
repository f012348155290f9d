//! The status of a policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStatus {
    /// The generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Rendered: whether its templates are rendered. Ready: whether it is evaluated for requests. Stalled: the policy is
    /// invalid; absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<PolicyCondition>,
    /// The status of its rules, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleStatus>,
}

/// A condition (`meta/v1`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["type", "status", "reason", "message", "lastTransitionTime"]))]
pub struct PolicyCondition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// The reason, in CamelCase.
    pub reason: String,
    /// The message for users.
    pub message: String,
    /// The time of the last change of the status.
    pub last_transition_time: String,
    /// The generation that this condition describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The status of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleStatus {
    /// The rendered template.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rendered_cue: String,
    /// The error that prevents its evaluation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}
