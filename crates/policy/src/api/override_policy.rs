//! OverridePolicy and ClusterOverridePolicy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    CelOverride, FailurePolicyType, MatchCondition, OriginOverrider, OverrideOperation, OverrideRuleTemplate,
    ResourceSelector, TargetOperation,
    schemas::{any, label_selector, rules, target_operations},
};

/// The overrides of a policy, and the objects they apply to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["overrideRules"]))]
pub struct OverridePolicySpec {
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
    /// The rules, in order.
    #[schemars(length(min = 1, max = 64))]
    pub override_rules: Vec<OverrideRule>,
}

/// An override for some operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["overriders"]))]
pub struct OverrideRule {
    /// The operations; empty means all. * must be the only entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-validations" = target_operations()))]
    pub target_operations: Vec<TargetOperation>,
    /// The override.
    pub overriders: Overriders,
}

/// Alternative forms of overrides. If several are set, they are applied in the order renderedCue, cue, cel,
/// origin, plaintext; each sees the result of the previous one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = rules(&[(
    "has(self.plaintext) || has(self.cue) || has(self.cel) || has(self.template) || has(self.origin)",
    "must have at least one of plaintext, cue, cel, template and origin",
)])))]
pub struct Overriders {
    /// Operations of a JSON patch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub plaintext: Vec<PlaintextOverrider>,
    /// A program in CUE with the field patches.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 65536))]
    pub cue: String,
    /// An expression in CEL that yields patches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelOverride>,
    /// A template, which is rendered to renderedCue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<OverrideRuleTemplate>,
    /// The rendered template. Other values are overwritten.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rendered_cue: String,
    /// Typed overrides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub origin: Vec<OriginOverrider>,
}

/// An operation of a JSON patch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaintextOverrider {
    /// A JSON pointer, for example /metadata/annotations/example.com~1owner.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
    /// add, remove or replace. replace adds a missing value.
    #[serde(rename = "op")]
    pub operation: OverrideOperation,
    /// Any JSON; omitted for remove.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any")]
    pub value: Value,
}
