//! The names of operations.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operation on an object. Karmada's `InterpreterOperation` without `Prune`, which Karmada never uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Operation {
    /// The number of replicas, and what each requires.
    InterpretReplica,
    /// The components of the object, each with its own replicas.
    InterpretComponent,
    /// The object with another number of replicas.
    ReviseReplica,
    /// The desired object with values of the observed object that must be kept.
    Retain,
    /// The object with the aggregated status of several clusters.
    AggregateStatus,
    /// The part of the status to collect.
    InterpretStatus,
    /// Whether the object is healthy.
    #[serde(alias = "InterpretHealthy")]
    InterpretHealth,
    /// The objects that the object depends on.
    InterpretDependency,
}

/// The name is not that of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an operation; use one of {list}", list = Operation::ALL.map(Operation::name).join(", "))]
pub struct UnknownOperationError(String);

impl Operation {
    /// All operations, in Karmada's order.
    pub const ALL: [Self; 8] = [
        Self::InterpretReplica,
        Self::InterpretComponent,
        Self::ReviseReplica,
        Self::Retain,
        Self::AggregateStatus,
        Self::InterpretStatus,
        Self::InterpretHealth,
        Self::InterpretDependency,
    ];

    /// The name in rules and requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::InterpretReplica => "InterpretReplica",
            Self::InterpretComponent => "InterpretComponent",
            Self::ReviseReplica => "ReviseReplica",
            Self::Retain => "Retain",
            Self::AggregateStatus => "AggregateStatus",
            Self::InterpretStatus => "InterpretStatus",
            Self::InterpretHealth => "InterpretHealth",
            Self::InterpretDependency => "InterpretDependency",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Parses a name in any case. `InterpretHealthy` is the name of `InterpretHealth` in Karmada's proposal.
impl FromStr for Operation {
    type Err = UnknownOperationError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_named = |operation: &Self| name.eq_ignore_ascii_case(operation.name());
        if name.eq_ignore_ascii_case("InterpretHealthy") {
            return Ok(Self::InterpretHealth);
        }
        let known = Self::ALL.into_iter().find(is_named);
        known.ok_or_else(|| UnknownOperationError(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_round_trip() {
        for operation in Operation::ALL {
            assert_eq!(operation.name().parse(), Ok(operation));
            assert_eq!(operation.name().to_lowercase().parse(), Ok(operation));
            assert_eq!(json!(operation), operation.name());
            assert_eq!(
                serde_json::from_value::<Operation>(json!(operation.name())).unwrap(),
                operation
            );
        }
    }

    #[test]
    fn the_name_of_the_proposal_is_an_alias() {
        assert_eq!("InterpretHealthy".parse(), Ok(Operation::InterpretHealth));
        assert_eq!(
            serde_json::from_value::<Operation>(json!("InterpretHealthy")).unwrap(),
            Operation::InterpretHealth
        );
    }

    #[test]
    fn an_unknown_operation_lists_the_known_ones() {
        let error = "Prune".parse::<Operation>().unwrap_err().to_string();
        assert!(
            error.starts_with("\"Prune\" is not an operation; use one of InterpretReplica, "),
            "{error}"
        );
    }
}
