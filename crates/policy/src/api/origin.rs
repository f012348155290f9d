//! Typed overrides of Kubernetes fields.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Affinity, OverrideOperation, ResourceRequirements, Toleration, TopologySpreadConstraint,
    schemas::{containers, rules},
};

/// An override of one field of an object, or of the pods in its template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    ("self.type != 'annotations' || has(self.annotations)", "type: annotations requires the field annotations"),
    ("self.type != 'labels' || has(self.labels)", "type: labels requires the field labels"),
    ("self.type != 'nodeSelector' || has(self.nodeSelector)", "type: nodeSelector requires the field nodeSelector"),
    (
        "self.type != 'schedulerName' || self.operation == 'remove' || has(self.schedulerName)",
        "type: schedulerName requires the field schedulerName",
    ),
    (
        "self.type != 'resourceRequirements' || has(self.resourceRequirements)",
        "type: resourceRequirements requires the field resourceRequirements",
    ),
    ("self.type != 'resourceOversell' || has(self.resourcesOversell)", "type: resourceOversell requires the field resourcesOversell"),
    ("self.type != 'affinity' || self.operation == 'remove' || has(self.affinity)", "type: affinity requires the field affinity"),
    ("self.type != 'tolerations' || has(self.tolerations)", "type: tolerations requires the field tolerations"),
    (
        "self.type != 'topologySpreadConstraints' || self.operation == 'remove' || has(self.topologySpreadConstraints)",
        "type: topologySpreadConstraints requires the field topologySpreadConstraints",
    ),
])))]
pub struct OriginOverrider {
    /// The field to override.
    #[serde(rename = "type")]
    pub origin_type: OriginType,
    /// add, replace or remove.
    pub operation: OverrideOperation,
    /// Whether to replace the whole field instead of single entries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// For resourceRequirements and resourceOversell: the index of the container, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    #[schemars(range(min = 0))]
    pub container_count: i64,
    /// For resourceRequirements and resourceOversell: names of containers and init containers, or only * for
    /// all; empty to use containerCount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = containers()))]
    pub containers: Vec<String>,
    /// The annotations, if type is annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The labels, if type is labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The node selector, if type is nodeSelector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The value, if type is hostNetwork; defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// The scheduler, if type is schedulerName.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// The requests and limits, if type is resourceRequirements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_requirements: Option<ResourceRequirements>,
    /// For resourceOversell: factors above 0 by resource, in quotes, under requests and limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources_oversell: BTreeMap<String, BTreeMap<String, String>>,
    /// The affinity, if type is affinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// The tolerations, if type is tolerations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// The constraints, if type is topologySpreadConstraints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
}

/// The field that a typed override changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum OriginType {
    /// Annotations of the object.
    Annotations,
    /// Labels of the object.
    Labels,
    /// The node selector of pods.
    NodeSelector,
    /// Whether pods use the network of their node.
    HostNetwork,
    /// The scheduler of pods.
    SchedulerName,
    /// Requests and limits of containers.
    ResourceRequirements,
    /// Requests or limits of containers, multiplied by a factor.
    ResourceOversell,
    /// Affinity of pods.
    Affinity,
    /// Tolerations of pods.
    Tolerations,
    /// Topology spread constraints of pods.
    TopologySpreadConstraints,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_first(count: &i64) -> bool {
    *count == 0
}
