//! What is asked, about which objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Operation;

/// An operation with what it is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question<'a> {
    /// [`Operation::InterpretReplica`]
    Replica {
        /// As it is desired.
        object: &'a Value,
    },
    /// [`Operation::InterpretComponent`]
    Component {
        /// As it is desired.
        object: &'a Value,
    },
    /// [`Operation::ReviseReplica`]
    ReviseReplica {
        /// As it is desired.
        object: &'a Value,
        /// How many it shall have.
        replicas: i64,
    },
    /// [`Operation::Retain`]
    Retain {
        /// What would be written.
        desired: &'a Value,
        /// What is there.
        observed: &'a Value,
    },
    /// [`Operation::AggregateStatus`]
    AggregateStatus {
        /// As it is desired.
        object: &'a Value,
        /// What it is like in each cluster; nothing where nobody collected any.
        items: Option<&'a [AggregatedStatusItem]>,
    },
    /// [`Operation::InterpretStatus`]
    Status {
        /// As it is observed.
        object: &'a Value,
    },
    /// [`Operation::InterpretHealth`]
    Health {
        /// As it is observed.
        object: &'a Value,
    },
    /// [`Operation::InterpretDependency`]
    Dependency {
        /// As it is desired.
        object: &'a Value,
    },
}

/// An object's status in one cluster. Karmada's type of that name, `work.karmada.io/v1alpha2`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// Which cluster.
    pub cluster_name: String,
    /// Its status there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// Whether it was applied there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub health: String,
}

// === impl Question ===

impl<'a> Question<'a> {
    /// Asks an operation about an object. Of the rest counts what the operation takes: what is observed beside the object, how many
    /// replicas it shall have, what it is like in each cluster.
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

    /// What is asked.
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

    /// The object that it is about, which is what an object that is answered began as.
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

    /// The same question about another state of that object.
    #[must_use]
    pub fn about<'b>(self, object: &'b Value) -> Question<'b>
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
