//! ClusterValidatePolicy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    CelValidationRule, FailurePolicyType, MatchCondition, ResourceSelector, TargetOperation,
    ValidateRuleTemplate, ValidationAction,
    schemas::{label_selector, rules, target_operations},
};

/// The validations of a policy, and the objects they apply to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["validateRules"]))]
pub struct ClusterValidatePolicySpec {
    /// The objects; an object must match one of the selectors. An empty list selects all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub resource_selectors: Vec<ResourceSelector>,
    /// The selector of namespaces. Objects without a namespace always match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub namespace_selector: Option<Value>,
    /// Conditions that a request must meet before the rules are evaluated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub match_conditions: Vec<MatchCondition>,
    /// The handling of a request if the policy cannot be evaluated: Fail or Ignore. Defaults to Fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicyType>,
    /// The handling of a request that a rule finds invalid: Deny, Warn, Audit. Defaults to Deny. Deny and
    /// Warn exclude each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 3),
        extend(
            "x-kubernetes-list-type" = "set",
            "x-kubernetes-validations" = rules(&[("!('Deny' in self && 'Warn' in self)", "must not have both Deny and Warn")]),
        )
    )]
    pub validation_actions: Vec<ValidationAction>,
    /// The rules, in order.
    #[schemars(length(min = 1, max = 64))]
    pub validate_rules: Vec<ValidateRule>,
}

/// A validation for some operations. If several forms are set, they are evaluated in the order renderedCue,
/// cue, cel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = rules(&[(
    "has(self.cue) || has(self.cel) || has(self.template)",
    "must have at least one of cue, cel and template",
)])))]
pub struct ValidateRule {
    /// The operations; empty means all. * must be the only entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-validations" = target_operations()))]
    pub target_operations: Vec<TargetOperation>,
    /// A program in CUE with the field validate, which has valid and reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 65536))]
    pub cue: String,
    /// Expressions in CEL that must yield true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelValidationRule>,
    /// A template, which is rendered to renderedCue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<ValidateRuleTemplate>,
    /// The rendered template. Other values are overwritten.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rendered_cue: String,
}
