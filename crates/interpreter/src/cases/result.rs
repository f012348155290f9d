//! Answers by their published names.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{Answer, Operation};

/// A part of an answer, with the name that `karmadactl interpret` prints and test cases use.
///
/// | operation | results |
/// |---|---|
/// | `Retain` | `retained` |
/// | `InterpretReplica` | `replica`, `requires` |
/// | `InterpretComponent` | `components` |
/// | `ReviseReplica` | `revised` |
/// | `InterpretStatus` | `status` |
/// | `AggregateStatus` | `aggregatedStatus` |
/// | `InterpretHealth` | `healthy` |
/// | `InterpretDependency` | `dependencies` |
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// Name of the result, from the table above.
    pub name: &'static str,
    /// Value of the result, as printed and compared.
    pub value: Value,
}

impl CaseResult {
    /// Splits the answer to an operation into its results.
    pub fn from_answer(operation: Operation, answer: &Answer) -> Vec<Self> {
        match answer {
            Answer::Replica {
                replicas,
                requirements,
            } => vec![
                Self::new("replica", replicas),
                Self::new("requires", requirements),
            ],
            Answer::Component(components) => vec![Self::new("components", components)],
            Answer::Object(object) => {
                let name = match operation {
                    Operation::Retain => "retained",
                    Operation::AggregateStatus => "aggregatedStatus",
                    _ => "revised",
                };
                vec![Self::new(name, object)]
            }
            Answer::Status(status) => vec![Self::new("status", status)],
            Answer::Health(healthy) => vec![Self::new("healthy", healthy)],
            Answer::Dependency(dependencies) => vec![Self::new("dependencies", dependencies)],
        }
    }

    fn new(name: &'static str, value: impl Serialize) -> Self {
        Self {
            name,
            value: json!(value),
        }
    }
}
