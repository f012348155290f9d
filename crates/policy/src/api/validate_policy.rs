//! ClusterValidatePolicy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    CelValidationRule, FailurePolicyType, MatchCondition, ResourceSelector, TargetOperation,
    ValidateRuleTemplate, ValidationAction,
    schemas::{label_selector, rules, target_operations},
};

/// What is refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["validateRules"]))]
pub struct ClusterValidatePolicySpec {
    /// Of which objects: those that any of them selects. None selects all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub resource_selectors: Vec<ResourceSelector>,
    /// In namespaces with which labels. Objects without a namespace are not asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub namespace_selector: Option<Value>,
    /// What has to hold before the rules are looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub match_conditions: Vec<MatchCondition>,
    /// What becomes of a request when the policy cannot be evaluated: Fail or Ignore; not given for Fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicyType>,
    /// What becomes of a request that a rule refuses: Deny, Warn, Audit; not given for Deny. Deny and Warn exclude each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 3),
        extend(
            "x-kubernetes-list-type" = "set",
            "x-kubernetes-validations" = rules(&[("!('Deny' in self && 'Warn' in self)", "must not have both Deny and Warn")]),
        )
    )]
    pub validation_actions: Vec<ValidationAction>,
    /// What is looked at, in order.
    #[schemars(length(min = 1, max = 64))]
    pub validate_rules: Vec<ValidateRule>,
}

/// What is looked at on some operations. Several ways to say it are asked in the order renderedCue, cue, cel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = rules(&[(
    "has(self.cue) || has(self.cel) || has(self.template)",
    "must have at least one of cue, cel and template",
)])))]
pub struct ValidateRule {
    /// On which operations; none for all. * stands alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-validations" = target_operations()))]
    pub target_operations: Vec<TargetOperation>,
    /// A program in CUE that has validate, with valid and reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 65536))]
    pub cue: String,
    /// Expressions in CEL that must be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelValidationRule>,
    /// What is rendered to renderedCue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<ValidateRuleTemplate>,
    /// What template was rendered to. What anybody else writes here is overwritten.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rendered_cue: String,
}
