//! What a customization says, operation by operation: Karmada's `customizations`, and what may stand there without a script.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Operation,
    declarative::{DependencyPaths, ExpectedCondition, FieldComparison},
};

/// How objects are interpreted. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomizationRules {
    /// What of an observed object is kept when a desired one is written: Retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<LocalValueRetention>,
    /// How many replicas an object has, and what each needs: InterpretReplica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_resource: Option<ReplicaResourceRequirement>,
    /// What an object is made of that has several kinds of replicas: InterpretComponent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component_resource: Option<ComponentResourceRequirement>,
    /// How an object gets another number of replicas: ReviseReplica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_revision: Option<ReplicaRevision>,
    /// What of a status is worth collecting: InterpretStatus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<StatusReflection>,
    /// How the status of several clusters becomes one: AggregateStatus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<StatusAggregation>,
    /// Whether an object does what it is for: InterpretHealth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_interpretation: Option<HealthInterpretation>,
    /// What an object needs beside it: InterpretDependency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency_interpretation: Option<DependencyInterpretation>,
}

/// What is kept. Karmada's type of that name, with fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalValueRetention {
    /// JSONPaths of fields whose values are copied from the observed object to the desired one where they are there, before the script
    /// is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// A Lua script with a function Retain(desiredObj, observedObj) that returns the object as it is to be written.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// How many replicas, and what each needs. Karmada's type of that name, with paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaResourceRequirement {
    /// A JSONPath to the number of replicas, instead of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_path: Option<String>,
    /// A JSONPath to the pod template of the replicas, which tells what each needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_path: Option<String>,
    /// A Lua script with a function GetReplicas(obj) that returns the number of replicas and what each needs, or nil.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// What an object is made of. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ComponentResourceRequirement {
    /// A Lua script with a function GetComponents(obj) that returns a list of name, replicas and replicaRequirements.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// How an object gets another number of replicas. Karmada's type of that name, with a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaRevision {
    /// A JSONPath of names of fields to where the number is written, instead of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_path: Option<String>,
    /// A Lua script with a function ReviseReplica(obj, replica) that returns the object with so many replicas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// What of a status is worth collecting. Karmada's type of that name, with fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusReflection {
    /// JSONPaths below .status to what is collected, instead of a script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// A Lua script with a function ReflectStatus(observedObj) that returns the status to collect.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// How the status of several clusters becomes one. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusAggregation {
    /// A Lua script with a function AggregateStatus(desiredObj, statusItems) that returns the object with its status.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// Whether an object does what it is for. Karmada's type of that name, with conditions and comparisons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthInterpretation {
    /// A condition that a healthy object has, instead of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ExpectedCondition>,
    /// Comparisons that all hold for a healthy object, instead of a script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<FieldComparison>,
    /// Comparisons of which at least one holds for a healthy object, instead of a script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<FieldComparison>,
    /// A Lua script with a function InterpretHealth(observedObj) that returns whether the object is healthy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// What an object needs beside it. Karmada's type of that name, with paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DependencyInterpretation {
    /// Where the object names others that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<DependencyPaths>,
    /// A JSONPath to pod templates, whose pods need what they name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_path: Option<String>,
    /// A Lua script with a function GetDependencies(desiredObj) that returns a list of references.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

// === impl CustomizationRules ===

impl CustomizationRules {
    /// The script for an operation, if there is one that is not empty.
    pub fn lua_script(&self, operation: Operation) -> Option<&str> {
        let script = match operation {
            Operation::Retain => &self.retention.as_ref()?.lua_script,
            Operation::InterpretReplica => &self.replica_resource.as_ref()?.lua_script,
            Operation::InterpretComponent => &self.component_resource.as_ref()?.lua_script,
            Operation::ReviseReplica => &self.replica_revision.as_ref()?.lua_script,
            Operation::InterpretStatus => &self.status_reflection.as_ref()?.lua_script,
            Operation::AggregateStatus => &self.status_aggregation.as_ref()?.lua_script,
            Operation::InterpretHealth => &self.health_interpretation.as_ref()?.lua_script,
            Operation::InterpretDependency => &self.dependency_interpretation.as_ref()?.lua_script,
        };
        (!script.is_empty()).then_some(script)
    }

    /// Whether there is anything for an operation.
    pub fn has(&self, operation: Operation) -> bool {
        let is_declared = match operation {
            Operation::Retain => self
                .retention
                .as_ref()
                .is_some_and(|rule| !rule.fields.is_empty()),
            Operation::InterpretReplica => {
                let rule = self.replica_resource.as_ref();
                rule.is_some_and(|rule| rule.replicas_path.is_some())
            }
            Operation::ReviseReplica => {
                let rule = self.replica_revision.as_ref();
                rule.is_some_and(|rule| rule.replicas_path.is_some())
            }
            Operation::InterpretStatus => {
                let rule = self.status_reflection.as_ref();
                rule.is_some_and(|rule| !rule.fields.is_empty())
            }
            Operation::InterpretHealth => {
                let rule = self.health_interpretation.as_ref();
                rule.is_some_and(|rule| {
                    rule.condition.is_some() || !rule.all.is_empty() || !rule.any.is_empty()
                })
            }
            Operation::InterpretDependency => {
                let rule = self.dependency_interpretation.as_ref();
                rule.is_some_and(|rule| !rule.references.is_empty() || rule.pod_template_path.is_some())
            }
            Operation::InterpretComponent | Operation::AggregateStatus => false,
        };
        is_declared || self.lua_script(operation).is_some()
    }

    /// What an operation is called in `customizations`.
    pub fn field(operation: Operation) -> &'static str {
        match operation {
            Operation::Retain => "retention",
            Operation::InterpretReplica => "replicaResource",
            Operation::InterpretComponent => "componentResource",
            Operation::ReviseReplica => "replicaRevision",
            Operation::InterpretStatus => "statusReflection",
            Operation::AggregateStatus => "statusAggregation",
            Operation::InterpretHealth => "healthInterpretation",
            Operation::InterpretDependency => "dependencyInterpretation",
        }
    }
}
