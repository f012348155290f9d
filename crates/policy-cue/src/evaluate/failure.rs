//! Why an expression has no value, while the evaluation goes on.

use std::rc::Rc;

use crate::position::SourcePosition;

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
    pub(crate) message: String,
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
        message: impl Into<String>,
    ) -> SharedFailure {
        Rc::new(Self {
            severity,
            position,
            message: message.into(),
        })
    }

    pub(crate) fn error(position: SourcePosition, message: impl Into<String>) -> SharedFailure {
        Self::new(Severity::Error, position, message)
    }

    pub(crate) fn incomplete(position: SourcePosition, message: impl Into<String>) -> SharedFailure {
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

/// The one that hides the other; the first of equals.
pub(crate) fn worse(first: Option<SharedFailure>, second: Option<SharedFailure>) -> Option<SharedFailure> {
    match (first, second) {
        (Some(first), Some(second)) if second.severity < first.severity => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

/// Both values, or the failure that hides the other.
pub(crate) fn both<A, B>(first: Evaluated<A>, second: Evaluated<B>) -> Evaluated<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) if second.severity < first.severity => Err(second),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}
