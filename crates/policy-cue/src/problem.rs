//! Compile-time problems.

use std::fmt;

use thiserror::Error;

use crate::position::SourcePosition;

/// The maximum number of problems; parsing stops after it.
pub(crate) const MOST_PROBLEMS: usize = 64;

/// A construct that is not in the subset, or not valid CUE.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{position}: {construct}: {message}")]
pub struct CueProblem {
    /// Position of the construct in the source.
    pub position: SourcePosition,
    /// Name of the construct: "definition", "pattern constraint", "syntax" and so on.
    pub construct: &'static str,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// The problems of a source, in source order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct CueProblems(Vec<CueProblem>);

impl CueProblem {
    pub(crate) fn new(position: SourcePosition, construct: &'static str, message: impl Into<String>) -> Self {
        Self {
            position,
            construct,
            message: message.into(),
        }
    }

    /// A syntax error, or a construct that CUE itself forbids.
    pub(crate) fn syntax(position: SourcePosition, message: impl Into<String>) -> Self {
        Self::new(position, "syntax", message)
    }
}

impl CueProblems {
    /// Sorts the problems by position; `None` if there are none.
    pub(crate) fn from_problems(mut problems: Vec<CueProblem>) -> Option<Self> {
        problems.sort_by_key(|problem| problem.position);
        problems.dedup();
        problems.truncate(MOST_PROBLEMS);
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// The problems; at least one.
    #[must_use]
    pub fn as_slice(&self) -> &[CueProblem] {
        &self.0
    }
}

impl IntoIterator for CueProblems {
    type Item = CueProblem;
    type IntoIter = std::vec::IntoIter<CueProblem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for CueProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{problem}")?;
        }
        Ok(())
    }
}
