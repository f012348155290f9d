//! Answers to questions about objects.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_object::label_selector;

use crate::Quantity;

/// The answer to the [`Question`](crate::Question) of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The number of replicas, and what each requires, if known.
    Replica {
        /// The number of replicas.
        replicas: i32,
        /// What each replica requires.
        requirements: Option<ReplicaRequirements>,
    },
    /// The components of the object.
    Component(Vec<Component>),
    /// The changed object: with revised replicas, retained values, or an aggregated status.
    Object(Value),
    /// The status to collect, if any.
    Status(Option<Value>),
    /// Whether the object is healthy.
    Health(bool),
    /// The other objects that the object depends on.
    Dependency(Vec<DependentObjectReference>),
}

/// What one replica requires; Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaRequirements {
    /// The nodes that it can run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<NodeClaim>,
    /// Requested quantities by resource name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_request: BTreeMap<String, String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its PriorityClass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
}

/// The nodes that a replica can run on; Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaim {
    /// A NodeSelector: the required node affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_node_affinity: Option<Value>,
    /// Labels of nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Value>,
}

/// A part of an object with its own replicas; Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// The name, unique within the object.
    pub name: String,
    /// The number of replicas.
    pub replicas: i32,
    /// What each replica requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
}

/// A reference to an object, or by labels to several, that another depends on; Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependentObjectReference {
    /// For example `v1`.
    #[serde(default)]
    pub api_version: String,
    /// For example `ConfigMap`.
    #[serde(default)]
    pub kind: String,
    /// The namespace; absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name; either this or a selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A LabelSelector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<Value>,
}

impl DependentObjectReference {
    /// Checks that the reference selects objects, like Karmada (`VerifyDependencies` of
    /// `pkg/util/interpreter/validation`).
    ///
    /// # Errors
    ///
    /// The missing field.
    pub fn check(&self) -> Result<(), String> {
        if self.api_version.is_empty() {
            return Err("apiVersion: is missing".to_owned());
        }
        if self.kind.is_empty() {
            return Err("kind: is missing".to_owned());
        }
        match (&self.name, &self.label_selector) {
            (None, None) => Err("name or labelSelector: is missing".to_owned()),
            (Some(name), None) if name.is_empty() => Err("name: is empty".to_owned()),
            (_, Some(selector)) => {
                label_selector::check(selector).map_err(|error| format!("labelSelector: {error}"))
            }
            (Some(_), None) => Ok(()),
        }
    }
}

/// Rewrites the quantities of ReplicaRequirements, which may also be JSON numbers, in their canonical form.
/// Returns the problem of each invalid quantity, after the name of its field.
pub(crate) fn canonicalize_quantities(requirements: &mut Value) -> Vec<String> {
    let requests = requirements
        .get_mut("resourceRequest")
        .and_then(Value::as_object_mut);
    let mut wrong = Vec::new();
    for (name, amount) in requests.into_iter().flatten() {
        let written = match &*amount {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match Quantity::parse(&written) {
            Ok(quantity) => *amount = quantity.to_string().into(),
            Err(error) => wrong.push(format!("resourceRequest.{name}: {error}")),
        }
    }
    wrong
}
