//! The rules of a customization for each operation: Karmada's `customizations`, extended with declarative
//! fields.

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
    /// The values of an observed object to keep when the desired object is written: Retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<LocalValueRetention>,
    /// The number of replicas of an object, and what each requires: InterpretReplica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_resource: Option<ReplicaResourceRequirement>,
    /// The components of an object with several kinds of replicas: InterpretComponent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component_resource: Option<ComponentResourceRequirement>,
    /// How to change the number of replicas of an object: ReviseReplica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_revision: Option<ReplicaRevision>,
    /// The part of a status to collect: InterpretStatus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<StatusReflection>,
    /// How to aggregate the status of several clusters: AggregateStatus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<StatusAggregation>,
    /// Whether an object is healthy: InterpretHealth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_interpretation: Option<HealthInterpretation>,
    /// The objects that an object depends on: InterpretDependency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency_interpretation: Option<DependencyInterpretation>,
}

/// The values to keep. Karmada's type of that name, with fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalValueRetention {
    /// JSONPaths of fields to copy from the observed object to the desired one if they are present, before
    /// the script runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// A Lua script with a function Retain(desiredObj, observedObj) that returns the object to write.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// The number of replicas, and what each requires. Karmada's type of that name, with paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaResourceRequirement {
    /// A JSONPath of the number of replicas, instead of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_path: Option<String>,
    /// A JSONPath of the pod template of the replicas, which defines what each requires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_path: Option<String>,
    /// A Lua script with a function GetReplicas(obj) that returns the number of replicas and what each
    /// requires, or nil.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// The components of an object. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ComponentResourceRequirement {
    /// A Lua script with a function GetComponents(obj) that returns a list of name, replicas and replicaRequirements.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// How to change the number of replicas. Karmada's type of that name, with a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaRevision {
    /// A JSONPath of only field names where the number of replicas is written, instead of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_path: Option<String>,
    /// A Lua script with a function ReviseReplica(obj, replica) that returns the object with that number of
    /// replicas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// The part of a status to collect. Karmada's type of that name, with fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusReflection {
    /// JSONPaths below .status of the fields to collect, instead of a script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// A Lua script with a function ReflectStatus(observedObj) that returns the status to collect.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// How to aggregate the status of several clusters. Karmada's type of that name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusAggregation {
    /// A Lua script with a function AggregateStatus(desiredObj, statusItems) that returns the object with its status.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// Whether an object is healthy. Karmada's type of that name, with conditions and comparisons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthInterpretation {
    /// A condition of a healthy object, instead of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ExpectedCondition>,
    /// Comparisons that are all true for a healthy object, instead of a script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<FieldComparison>,
    /// Comparisons of which at least one is true for a healthy object, instead of a script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<FieldComparison>,
    /// A Lua script with a function InterpretHealth(observedObj) that returns whether the object is healthy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

/// The objects that an object depends on. Karmada's type of that name, with paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DependencyInterpretation {
    /// Where the object references other objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<DependencyPaths>,
    /// A JSONPath of pod templates, whose references are dependencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_path: Option<String>,
    /// A Lua script with a function GetDependencies(desiredObj) that returns a list of references.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lua_script: String,
}

impl CustomizationRules {
    /// Returns the script for an operation, unless it is absent or empty.
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

    /// Reports whether there are rules for an operation.
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

    /// Returns the field of an operation in `customizations`.
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
