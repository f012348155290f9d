//! Parts of pods that rules override, as `core/v1` has them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{IntOrString, schemas::label_selector};

/// A taint that a pod tolerates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// The key of the taint; empty for all, with the operator Exists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Exists or Equal; not given for Equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,
    /// The value of the taint; empty with the operator Exists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// NoSchedule, PreferNoSchedule or NoExecute; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// How long the taint is tolerated, with the effect NoExecute; not given for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How the value of a taint is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TolerationOperator {
    /// It is the value of the toleration. This is the default.
    #[default]
    Equal,
    /// It does not matter.
    Exists,
}

/// What a container asks for, and may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRequirements {
    /// The most that it may use, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, IntOrString>,
    /// What it asks for, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, IntOrString>,
}

/// How pods spread over domains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// How many more pods there may be in one domain than in another.
    pub max_skew: i32,
    /// The label of nodes whose values are the domains.
    #[schemars(length(min = 1))]
    pub topology_key: String,
    /// DoNotSchedule or ScheduleAnyway.
    pub when_unsatisfiable: String,
    /// Which pods are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub label_selector: Option<Value>,
    /// Labels of the pod that pods must have, too, to be counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_label_keys: Vec<String>,
    /// The fewest domains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    /// Honor or Ignore: whether nodes count that the pod's affinity excludes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<String>,
    /// Honor or Ignore: whether nodes count whose taints the pod does not tolerate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_taints_policy: Option<String>,
}
