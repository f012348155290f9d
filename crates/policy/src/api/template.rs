//! Overrides without code: templates that are rendered to CUE.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Affinity, ConstantValue, ResourceRequirements, Toleration, ValueReference,
    schemas::{containers, rules},
};

/// An override that is rendered to CUE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    (
        "!(self.type in ['annotations', 'labels']) || has(self.path) && self.path != '' || has(self.value) && has(self.value.stringMap)",
        "type: annotations and labels need path, or value.stringMap",
    ),
    (
        "!(self.type in ['annotations', 'labels']) || self.operation == 'remove' || has(self.value) || has(self.valueRef)",
        "type: annotations and labels need value or valueRef",
    ),
    ("!(has(self.value) && has(self.valueRef))", "must not have both value and valueRef"),
    ("self.type != 'resources' || has(self.resources)", "type: resources needs resources"),
    ("self.type != 'resourcesOversell' || has(self.resourcesOversell)", "type: resourcesOversell needs resourcesOversell"),
    ("self.type != 'tolerations' || has(self.tolerations)", "type: tolerations needs tolerations"),
    ("self.type != 'affinity' || has(self.affinity)", "type: affinity needs affinity"),
])))]
pub struct OverrideRuleTemplate {
    /// What is overridden.
    #[serde(rename = "type")]
    pub template_type: OverrideTemplateType,
    /// add, replace or remove.
    pub operation: OverrideOperation,
    /// For annotations and labels: the key. A value that is a stringMap needs none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// For annotations and labels: the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<ConstantValue>,
    /// For annotations and labels: where the value comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_ref: Option<ValueReference>,
    /// For resources: what containers ask for, and may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// For resourcesOversell: which part of their limits containers ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_oversell: Option<ResourcesOversell>,
    /// For tolerations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// For affinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// For resources and resourcesOversell: names of containers and init containers, or * alone for all of both; empty for the first
    /// container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = containers()))]
    pub containers: Vec<String>,
}

/// What a template overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum OverrideTemplateType {
    /// Annotations of the object.
    Annotations,
    /// Labels of the object.
    Labels,
    /// What containers ask for: a part of their limits.
    ResourcesOversell,
    /// What containers ask for, and may use.
    Resources,
    /// Which nodes and pods a pod is drawn to or kept from.
    Affinity,
    /// Taints that a pod tolerates.
    Tolerations,
}

/// What is done at a place of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum OverrideOperation {
    /// A value is added.
    Add,
    /// A value is put in the place of another, or added where there is none.
    Replace,
    /// What is there is removed.
    Remove,
}

/// Which part of their limits containers ask for: numbers in quotes above 0 and below 1. Those that are not given, or 0, are left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourcesOversell {
    /// Of cpu.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpu_factor: String,
    /// Of memory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub memory_factor: String,
    /// Of ephemeral-storage.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disk_factor: String,
}
