//! Answers from declarative fields.

use serde_json::Value;
use thiserror::Error;

use super::{DeclaredDependencies, DeclaredHealth, DeclaredReplicas, DeclaredRevision, DeclaredStatus};
use crate::{Answer, Question, error::OtherAnswerError, pod::PodError};

/// The compiled declarative fields for one operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeclaredAnswer {
    /// For [`crate::Operation::InterpretHealth`].
    Health(DeclaredHealth),
    /// For [`crate::Operation::InterpretReplica`].
    Replicas(DeclaredReplicas),
    /// For [`crate::Operation::ReviseReplica`].
    Revision(DeclaredRevision),
    /// For [`crate::Operation::InterpretStatus`].
    Status(DeclaredStatus),
    /// For [`crate::Operation::InterpretDependency`].
    Dependencies(DeclaredDependencies),
}

/// Why declarative fields have no answer for an object.
#[derive(Debug, Error)]
pub(crate) enum DeclaredAnswerError {
    /// The value at the path of replicas is not a number of replicas.
    #[error("{path}: {found} is not a number of replicas")]
    Replicas { path: String, found: String },
    /// What each replica requires cannot be read from the pod template.
    #[error(transparent)]
    Requirements(#[from] PodError),
    /// The question is for another operation.
    #[error(transparent)]
    Other(#[from] OtherAnswerError),
}

impl DeclaredAnswer {
    /// Answers a question of the same operation.
    pub(crate) fn answer(&self, question: Question<'_>) -> Result<Answer, DeclaredAnswerError> {
        let object: &Value = question.object();
        Ok(match (self, question) {
            (Self::Health(health), Question::Health { .. }) => Answer::Health(health.is_healthy(object)),
            (Self::Replicas(declared), Question::Replica { .. }) => {
                let (replicas, requirements) = declared.replicas(object)?;
                Answer::Replica {
                    replicas,
                    requirements,
                }
            }
            (Self::Revision(revision), Question::ReviseReplica { replicas, .. }) => {
                Answer::Object(revision.revise(object, replicas))
            }
            (Self::Status(status), Question::Status { .. }) => Answer::Status(status.reflect(object)),
            (Self::Dependencies(declared), Question::Dependency { .. }) => {
                Answer::Dependency(declared.dependencies(object))
            }
            _ => return Err(OtherAnswerError(question.operation()).into()),
        })
    }
}
