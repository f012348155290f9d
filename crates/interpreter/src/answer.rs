//! What is answered.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_object::label_selector;

use crate::Quantity;

/// An answer to the question of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// How many replicas, and what each needs where that is known.
    Replica {
        /// How many.
        replicas: i32,
        /// What each needs.
        requirements: Option<ReplicaRequirements>,
    },
    /// What the object is made of.
    Component(Vec<Component>),
    /// The object as it becomes: of revising replicas, retaining, and aggregating status.
    Object(Value),
    /// What is worth collecting, where there is any.
    Status(Option<Value>),
    /// Whether it does what it is for.
    Health(bool),
    /// What it needs beside it.
    Dependency(Vec<DependentObjectReference>),
}

/// What one replica needs. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaRequirements {
    /// On which nodes it can run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<NodeClaim>,
    /// What it requests, as quantities by the name of the resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_request: BTreeMap<String, String>,
    /// In which namespace it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its PriorityClass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
}

/// On which nodes a replica can run. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaim {
    /// A NodeSelector: what its affinity requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_node_affinity: Option<Value>,
    /// Labels of nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Value>,
}

/// One of the parts of an object that have replicas of their own. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Unique within the object.
    pub name: String,
    /// How many.
    pub replicas: i32,
    /// What each needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
}

/// An object, or several by their labels, that another needs. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependentObjectReference {
    /// For example `v1`.
    #[serde(default)]
    pub api_version: String,
    /// For example `ConfigMap`.
    #[serde(default)]
    pub kind: String,
    /// None for what is in no namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Either a name or a selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A LabelSelector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<Value>,
}

// === impl DependentObjectReference ===

impl DependentObjectReference {
    /// Whether it names objects, as Karmada wants it (`VerifyDependencies` of `pkg/util/interpreter/validation`).
    ///
    /// # Errors
    ///
    /// What is missing.
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

/// Writes the amounts of ReplicaRequirements in their canonical form; in JSON they may be numbers, too. Returns what is wrong with
/// those that are not quantities, each behind its field.
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
