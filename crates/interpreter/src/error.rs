//! Why there is no answer.

use crate::{Operation, interpreter::InterpreterFailure};

/// An interpreter has no answer. Nobody else is asked then: what a user has said about a kind must not be silently replaced by what is
/// usual.
#[derive(Debug, thiserror::Error)]
#[error("{interpreter} failed at {operation} of {object}")]
pub struct InterpretError {
    /// Who.
    pub interpreter: String,
    /// At what.
    pub operation: Operation,
    /// Of which object.
    pub object: String,
    /// Why.
    #[source]
    pub source: InterpreterFailure,
}

/// An interpreter answered another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not one to {0}")]
pub struct OtherAnswerError(pub Operation);
