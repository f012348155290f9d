//! Why an expression has no value, while the evaluation goes on.

use std::{fmt, rc::Rc};

use crate::{builtins::BuiltinFunction, position::SourcePosition};

/// From the one that hides all others to the one that all others hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// The budget is used up. Nothing goes on after it.
    Exhausted,
    /// What only running the program shows to be outside of the subset. Nothing goes on after it.
    Unsupported,
    Error,
    Incomplete,
    /// Something needs itself. Incomplete, too.
    Cycle,
}

/// Why, and where in the program.
#[derive(Debug)]
pub(crate) struct EvaluationFailure {
    pub(crate) severity: Severity,
    pub(crate) position: SourcePosition,
    pub(crate) message: FailureMessage,
}

/// What is wrong. Put into words only where somebody is told: most failures only answer `!= _|_`.
#[derive(Debug)]
pub(crate) enum FailureMessage {
    Fixed(&'static str),
    Made(String),
    MissingField(Rc<str>),
    MissingOptional(Rc<str>),
    /// Something is wrong with what a function was called with.
    Argument(&'static BuiltinFunction, SharedFailure),
}

/// Many refer to one.
pub(crate) type SharedFailure = Rc<EvaluationFailure>;

/// A value or why there is none.
pub(crate) type Evaluated<T> = Result<T, SharedFailure>;

// === impl EvaluationFailure ===

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

    /// Whether another attempt, or other inputs, may succeed.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.severity >= Severity::Incomplete
    }

    /// Whether nothing goes on after it.
    pub(crate) fn is_final(&self) -> bool {
        self.severity <= Severity::Unsupported
    }
}

// === impl FailureMessage ===

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
            Self::MissingField(field) => write!(formatter, "the field {field:?} is not there"),
            Self::MissingOptional(field) => write!(formatter, "the optional field {field} is not there"),
            Self::Argument(function, failure) => write!(formatter, "{function}: {}", failure.message),
        }
    }
}

/// The one that hides the other; the first of equals.
pub(crate) fn worse_failure(first: Option<SharedFailure>, second: Option<SharedFailure>) -> Option<SharedFailure> {
    match (first, second) {
        (Some(first), Some(second)) if second.severity < first.severity => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

/// Both values, or the failure that hides the other.
pub(crate) fn both_or_worse<A, B>(first: Evaluated<A>, second: Evaluated<B>) -> Evaluated<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) if second.severity < first.severity => Err(second),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}
