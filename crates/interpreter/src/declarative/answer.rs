//! What is declared, as answers.

use serde_json::Value;
use thiserror::Error;

use super::{DeclaredDependencies, DeclaredHealth, DeclaredReplicas, DeclaredRevision, DeclaredStatus};
use crate::{Answer, Question, error::OtherAnswerError, pod::PodError};

/// What is declared for one operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeclaredAnswer {
    /// To [`crate::Operation::InterpretHealth`].
    Health(DeclaredHealth),
    /// To [`crate::Operation::InterpretReplica`].
    Replicas(DeclaredReplicas),
    /// To [`crate::Operation::ReviseReplica`].
    Revision(DeclaredRevision),
    /// To [`crate::Operation::InterpretStatus`].
    Status(DeclaredStatus),
    /// To [`crate::Operation::InterpretDependency`].
    Dependencies(DeclaredDependencies),
}

/// Why what is declared does not fit an object.
#[derive(Debug, Error)]
pub(crate) enum DeclaredAnswerError {
    /// There is something else where the number of replicas should be.
    #[error("{path}: {found} is not a number of replicas")]
    Replicas {
        /// Where.
        path: String,
        /// What.
        found: String,
    },
    /// What each replica needs cannot be told.
    #[error(transparent)]
    Requirements(#[from] PodError),
    /// Something else is asked.
    #[error(transparent)]
    Other(#[from] OtherAnswerError),
}

// === impl DeclaredAnswer ===

impl DeclaredAnswer {
    /// Answers a question of its operation.
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
