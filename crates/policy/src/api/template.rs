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
    ("self.type != 'resources' || has(self.resources)", "type: resources requires the field resources"),
    ("self.type != 'resourcesOversell' || has(self.resourcesOversell)", "type: resourcesOversell requires the field resourcesOversell"),
    ("self.type != 'tolerations' || has(self.tolerations)", "type: tolerations requires the field tolerations"),
    ("self.type != 'affinity' || has(self.affinity)", "type: affinity requires the field affinity"),
])))]
pub struct OverrideRuleTemplate {
    /// The field to override.
    #[serde(rename = "type")]
    pub template_type: OverrideTemplateType,
    /// add, replace or remove.
    pub operation: OverrideOperation,
    /// For annotations and labels: the key. Omitted if the value is a stringMap.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// For annotations and labels: the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<ConstantValue>,
    /// For annotations and labels: the source of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_ref: Option<ValueReference>,
    /// For resources: requests and limits of containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// For resourcesOversell: the fraction of the limits that containers request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_oversell: Option<ResourcesOversell>,
    /// The tolerations, if type is tolerations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// The affinity, if type is affinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// For resources and resourcesOversell: names of containers and init containers, or only * for all; empty
    /// for the first container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = containers()))]
    pub containers: Vec<String>,
}

/// The field that a template overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum OverrideTemplateType {
    /// Annotations of the object.
    Annotations,
    /// Labels of the object.
    Labels,
    /// Requests of containers as a fraction of their limits.
    ResourcesOversell,
    /// Requests and limits of containers.
    Resources,
    /// Affinity of pods.
    Affinity,
    /// Tolerations of pods.
    Tolerations,
}

/// The operation of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum OverrideOperation {
    /// Add a value.
    Add,
    /// Replace a value, or add it if missing.
    Replace,
    /// Remove a value.
    Remove,
}

/// The fractions of their limits that containers request: numbers above 0 and below 1, in quotes. Omitted or
/// 0 leaves a resource unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourcesOversell {
    /// The fraction of the cpu limit to request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpu_factor: String,
    /// The fraction of the memory limit to request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub memory_factor: String,
    /// The fraction of the ephemeral-storage limit to request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disk_factor: String,
}
