//! Parts of pods that rules override, as in `core/v1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{IntOrString, schemas::label_selector};

/// A toleration of a taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// The key of the taint; empty, with the operator Exists, for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Exists or Equal. Defaults to Equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,
    /// The value of the taint; empty with the operator Exists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// NoSchedule, PreferNoSchedule or NoExecute; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// How long the taint is tolerated, with the effect NoExecute. Defaults to forever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// The comparison with the value of a taint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TolerationOperator {
    /// The values are equal. This is the default.
    #[default]
    Equal,
    /// Any value matches.
    Exists,
}

/// Requests and limits of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRequirements {
    /// The limits, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, IntOrString>,
    /// The requests, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, IntOrString>,
}

/// The spread of pods over topology domains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// The maximum difference in the number of pods between domains.
    pub max_skew: i32,
    /// The node label whose values define the domains.
    #[schemars(length(min = 1))]
    pub topology_key: String,
    /// DoNotSchedule or ScheduleAnyway.
    pub when_unsatisfiable: String,
    /// The selector of the counted pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub label_selector: Option<Value>,
    /// Keys of pod labels whose values must be equal in counted pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_label_keys: Vec<String>,
    /// The minimum number of domains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    /// Honor or Ignore: whether only nodes that match the pod's affinity count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<String>,
    /// Honor or Ignore: whether only nodes whose taints the pod tolerates count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_taints_policy: Option<String>,
}
