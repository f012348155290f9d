//! Errors of interpreters.

use crate::{Operation, interpreter::InterpreterFailure};

/// An interpreter failed. No other interpreter is asked then: a user's customization must not be replaced
/// silently by the built-in rules.
#[derive(Debug, thiserror::Error)]
#[error("{interpreter} failed at {operation} of {object}")]
pub struct InterpretError {
    /// Name of the interpreter.
    pub interpreter: String,
    /// The failed operation.
    pub operation: Operation,
    /// Kind and name of the object.
    pub object: String,
    /// Why the interpreter failed.
    #[source]
    pub source: InterpreterFailure,
}

/// An answer is for another operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer does not fit the operation {0}")]
pub struct OtherAnswerError(pub Operation);
