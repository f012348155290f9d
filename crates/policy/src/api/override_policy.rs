//! OverridePolicy and ClusterOverridePolicy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    CelOverride, FailurePolicyType, MatchCondition, OriginOverrider, OverrideOperation, OverrideRuleTemplate,
    ResourceSelector, TargetOperation,
    schemas::{any, label_selector, rules, target_operations},
};

/// How objects are overridden.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["overrideRules"]))]
pub struct OverridePolicySpec {
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
    /// What is done, in order.
    #[schemars(length(min = 1, max = 64))]
    pub override_rules: Vec<OverrideRule>,
}

/// What is done on some operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["overriders"]))]
pub struct OverrideRule {
    /// On which operations; none for all. * stands alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-validations" = target_operations()))]
    pub target_operations: Vec<TargetOperation>,
    /// What is done.
    pub overriders: Overriders,
}

/// Ways to say what is done. Several are applied in the order renderedCue, cue, cel, origin, plaintext; each sees the result of the one
/// before.
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
    /// A program in CUE that has patches.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 65536))]
    pub cue: String,
    /// An expression in CEL for patches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelOverride>,
    /// What is rendered to renderedCue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<OverrideRuleTemplate>,
    /// What template was rendered to. What anybody else writes here is overwritten.
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
    /// add, remove or replace. replace adds what is not there.
    #[serde(rename = "op")]
    pub operation: OverrideOperation,
    /// Any JSON; none for remove.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any")]
    pub value: Value,
}
