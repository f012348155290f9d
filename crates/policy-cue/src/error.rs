//! Why a program has no output.

use thiserror::Error;

use crate::position::SourcePosition;

/// What an evaluation ends with instead of an output.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvaluationError {
    /// Something is missing: the inputs have no such field, or a value is only a kind or a choice. With other inputs the program may
    /// have an output.
    #[error("{position}: {path} is incomplete: {message}")]
    Incomplete {
        /// The field of the program that is incomplete.
        path: String,
        /// Where in the program the reason stands.
        position: SourcePosition,
        /// The reason.
        message: String,
    },
    /// Values contradict each other, or an operation does not fit its operands.
    #[error("{position}: {path} is an error: {message}")]
    Failed {
        /// The field of the program that is an error.
        path: String,
        /// Where in the program the reason stands.
        position: SourcePosition,
        /// The reason.
        message: String,
    },
    /// The program does what is outside of the subset and could not be seen before.
    #[error("{position}: {path} is not part of policy CUE: {message}")]
    Unsupported {
        /// The field of the program that does it.
        path: String,
        /// Where in the program it does.
        position: SourcePosition,
        /// What it does.
        message: String,
    },
    /// The budget was used up.
    #[error("{position}: the evaluation was stopped: {message}")]
    Exhausted {
        /// Where the program was.
        position: SourcePosition,
        /// What was used up.
        message: String,
    },
}

// === impl EvaluationError ===

impl EvaluationError {
    /// One word for metrics: `incomplete`, `error`, `unsupported` or `exhausted`.
    #[must_use]
    pub fn category(&self) -> &'static str {
        match self {
            Self::Incomplete { .. } => "incomplete",
            Self::Failed { .. } => "error",
            Self::Unsupported { .. } => "unsupported",
            Self::Exhausted { .. } => "exhausted",
        }
    }

    /// Where in the program the reason stands.
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
