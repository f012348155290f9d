//! The names of the questions.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is asked about an object. Karmada's `InterpreterOperation`, but for `Prune`, which nothing ever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Operation {
    /// How many replicas it has, and what each needs.
    InterpretReplica,
    /// What it is made of, each with replicas of its own.
    InterpretComponent,
    /// The object with other replicas.
    ReviseReplica,
    /// The desired object with what the cluster has set in the observed one.
    Retain,
    /// The object with the status of several clusters.
    AggregateStatus,
    /// What of its status is worth collecting.
    InterpretStatus,
    /// Whether it does what it is for.
    #[serde(alias = "InterpretHealthy")]
    InterpretHealth,
    /// What it needs beside it.
    InterpretDependency,
}

/// A name that is not one of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an operation; use one of {list}", list = Operation::ALL.map(Operation::name).join(", "))]
pub struct UnknownOperationError(String);

// === impl Operation ===

impl Operation {
    /// All of them, in Karmada's order.
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

    /// As it is written in rules and requests.
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

/// As people write it, in lower or upper case. `InterpretHealthy` is what Karmada's proposal called `InterpretHealth`.
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
    fn names_are_read_as_they_are_written() {
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
    fn what_is_not_an_operation_names_those_that_are() {
        let error = "Prune".parse::<Operation>().unwrap_err().to_string();
        assert!(
            error.starts_with("\"Prune\" is not an operation; use one of InterpretReplica, "),
            "{error}"
        );
    }
}
