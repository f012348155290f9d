//! Questions about objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Operation;

/// An operation with its objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question<'a> {
    /// [`Operation::InterpretReplica`]
    Replica {
        /// The desired object.
        object: &'a Value,
    },
    /// [`Operation::InterpretComponent`]
    Component {
        /// The desired object.
        object: &'a Value,
    },
    /// [`Operation::ReviseReplica`]
    ReviseReplica {
        /// The desired object.
        object: &'a Value,
        /// The requested number of replicas.
        replicas: i64,
    },
    /// [`Operation::Retain`]
    Retain {
        /// The desired object, before it is written.
        desired: &'a Value,
        /// The observed object.
        observed: &'a Value,
    },
    /// [`Operation::AggregateStatus`]
    AggregateStatus {
        /// The desired object.
        object: &'a Value,
        /// The status in each cluster; `None` if no status was collected.
        items: Option<&'a [AggregatedStatusItem]>,
    },
    /// [`Operation::InterpretStatus`]
    Status {
        /// The observed object.
        object: &'a Value,
    },
    /// [`Operation::InterpretHealth`]
    Health {
        /// The observed object.
        object: &'a Value,
    },
    /// [`Operation::InterpretDependency`]
    Dependency {
        /// The desired object.
        object: &'a Value,
    },
}

/// An object's status in one cluster. Karmada's type of that name, `work.karmada.io/v1alpha2`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// The name of the cluster.
    pub cluster_name: String,
    /// Status of the object in that cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// Whether the object was applied to the cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Why the object was not applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub health: String,
}

impl<'a> Question<'a> {
    /// Creates a question about an object. Operations ignore the arguments that they do not need: the
    /// observed object, the number of replicas, and the status in each cluster.
    pub fn new(
        operation: Operation,
        object: &'a Value,
        observed: &'a Value,
        replicas: i64,
        items: Option<&'a [AggregatedStatusItem]>,
    ) -> Self {
        match operation {
            Operation::InterpretReplica => Self::Replica { object },
            Operation::InterpretComponent => Self::Component { object },
            Operation::ReviseReplica => Self::ReviseReplica { object, replicas },
            Operation::Retain => Self::Retain {
                desired: object,
                observed,
            },
            Operation::AggregateStatus => Self::AggregateStatus { object, items },
            Operation::InterpretStatus => Self::Status { object },
            Operation::InterpretHealth => Self::Health { object },
            Operation::InterpretDependency => Self::Dependency { object },
        }
    }

    /// Returns the operation that answers this question.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Replica { .. } => Operation::InterpretReplica,
            Self::Component { .. } => Operation::InterpretComponent,
            Self::ReviseReplica { .. } => Operation::ReviseReplica,
            Self::Retain { .. } => Operation::Retain,
            Self::AggregateStatus { .. } => Operation::AggregateStatus,
            Self::Status { .. } => Operation::InterpretStatus,
            Self::Health { .. } => Operation::InterpretHealth,
            Self::Dependency { .. } => Operation::InterpretDependency,
        }
    }

    /// Returns the object of the question; an answer with an object is a changed version of it.
    pub fn object(&self) -> &'a Value {
        match *self {
            Self::Replica { object }
            | Self::Component { object }
            | Self::ReviseReplica { object, .. }
            | Self::AggregateStatus { object, .. }
            | Self::Status { object }
            | Self::Health { object }
            | Self::Dependency { object } => object,
            Self::Retain { desired, .. } => desired,
        }
    }

    /// Returns the same question about another version of the object.
    #[must_use]
    pub fn with_object<'b>(self, object: &'b Value) -> Question<'b>
    where
        'a: 'b,
    {
        match self {
            Self::Replica { .. } => Question::Replica { object },
            Self::Component { .. } => Question::Component { object },
            Self::ReviseReplica { replicas, .. } => Question::ReviseReplica { object, replicas },
            Self::Retain { observed, .. } => Question::Retain {
                desired: object,
                observed,
            },
            Self::AggregateStatus { items, .. } => Question::AggregateStatus { object, items },
            Self::Status { .. } => Question::Status { object },
            Self::Health { .. } => Question::Health { object },
            Self::Dependency { .. } => Question::Dependency { object },
        }
    }
}
