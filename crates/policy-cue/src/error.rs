//! Errors of an evaluation.

use thiserror::Error;

use crate::position::SourcePosition;

/// Why an evaluation has no output.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum EvaluationError {
    /// A value is incomplete: an input lacks a field, or a value is only a kind or a choice. Other inputs may
    /// yield an output.
    #[error("{position}: {path} is incomplete: {message}")]
    Incomplete {
        /// The incomplete field of the program.
        path: String,
        /// The position of the cause in the program.
        position: SourcePosition,
        message: String,
    },
    /// Values conflict, or an operation does not support its operands.
    #[error("{position}: {path} is an error: {message}")]
    Failed {
        /// The field of the program that is an error.
        path: String,
        /// The position of the cause in the program.
        position: SourcePosition,
        message: String,
    },
    /// The program uses a construct outside of the subset that was not detectable at compile time.
    #[error("{position}: {path} is not part of policy CUE: {message}")]
    Unsupported {
        /// The field of the program.
        path: String,
        /// The position in the program.
        position: SourcePosition,
        message: String,
    },
    /// The budget is exhausted.
    #[error("{position}: the evaluation was stopped: {message}")]
    Exhausted {
        /// The current position in the program.
        position: SourcePosition,
        /// The exhausted limit.
        message: String,
    },
}

impl EvaluationError {
    /// A label for metrics: `incomplete`, `error`, `unsupported` or `exhausted`.
    #[must_use]
    pub fn category(&self) -> &'static str {
        match self {
            Self::Incomplete { .. } => "incomplete",
            Self::Failed { .. } => "error",
            Self::Unsupported { .. } => "unsupported",
            Self::Exhausted { .. } => "exhausted",
        }
    }

    /// The position of the cause in the program.
    #[must_use]
    pub fn position(&self) -> SourcePosition {
        match self {
            Self::Incomplete { position, .. }
            | Self::Failed { position, .. }
            | Self::Unsupported { position, .. }
            | Self::Exhausted { position, .. } => *position,
        }
    }
}
