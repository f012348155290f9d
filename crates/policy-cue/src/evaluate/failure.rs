//! Failures of expressions during an evaluation.

use std::{fmt, rc::Rc};

use crate::{builtins::BuiltinFunction, position::SourcePosition};

/// Ordered by precedence: an earlier variant hides later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// The budget is exhausted. This ends the evaluation.
    Exhausted,
    /// A construct outside of the subset that only the evaluation detects. This ends the evaluation.
    Unsupported,
    Error,
    Incomplete,
    /// A cycle. This counts as incomplete.
    Cycle,
}

/// The reason, and the position in the program.
#[derive(Debug)]
pub(crate) struct EvaluationFailure {
    pub(crate) severity: Severity,
    pub(crate) position: SourcePosition,
    pub(crate) message: FailureMessage,
}

/// The reason. It is formatted on demand: most failures only answer `!= _|_`.
#[derive(Debug)]
pub(crate) enum FailureMessage {
    Fixed(&'static str),
    Made(String),
    MissingField(Rc<str>),
    MissingOptional(Rc<str>),
    /// A function rejects its arguments.
    Argument(&'static BuiltinFunction, SharedFailure),
}

/// A failure, shared by all values that depend on it.
pub(crate) type SharedFailure = Rc<EvaluationFailure>;

/// A value or a failure.
pub(crate) type Evaluated<T> = Result<T, SharedFailure>;

impl EvaluationFailure {
    pub(crate) fn new(
        severity: Severity,
        position: SourcePosition,
        message: impl Into<FailureMessage>,
    ) -> SharedFailure {
        Rc::new(Self {
            severity,
            position,
            message: message.into(),
        })
    }

    pub(crate) fn error(position: SourcePosition, message: impl Into<FailureMessage>) -> SharedFailure {
        Self::new(Severity::Error, position, message)
    }

    pub(crate) fn incomplete(position: SourcePosition, message: impl Into<FailureMessage>) -> SharedFailure {
        Self::new(Severity::Incomplete, position, message)
    }

    /// Reports whether another attempt or other inputs may succeed.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.severity >= Severity::Incomplete
    }

    /// Reports whether this failure ends the evaluation.
    pub(crate) fn is_final(&self) -> bool {
        self.severity <= Severity::Unsupported
    }
}

impl From<&'static str> for FailureMessage {
    fn from(message: &'static str) -> Self {
        Self::Fixed(message)
    }
}

impl From<String> for FailureMessage {
    fn from(message: String) -> Self {
        Self::Made(message)
    }
}

impl fmt::Display for FailureMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(message) => formatter.write_str(message),
            Self::Made(message) => formatter.write_str(message),
            Self::MissingField(field) => write!(formatter, "the field {field:?} does not exist"),
            Self::MissingOptional(field) => write!(formatter, "the optional field {field} does not exist"),
            Self::Argument(function, failure) => write!(formatter, "{function}: {}", failure.message),
        }
    }
}

/// Returns the failure of higher precedence; the first of equals.
pub(crate) fn worse_failure(
    first: Option<SharedFailure>,
    second: Option<SharedFailure>,
) -> Option<SharedFailure> {
    match (first, second) {
        (Some(first), Some(second)) if second.severity < first.severity => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

/// Returns both values, or the failure of higher precedence.
pub(crate) fn both_or_worse<A, B>(first: Evaluated<A>, second: Evaluated<B>) -> Evaluated<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) if second.severity < first.severity => Err(second),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}
