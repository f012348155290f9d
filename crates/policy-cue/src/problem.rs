//! What keeps a source from being a program.

use std::fmt;

use thiserror::Error;

use crate::position::SourcePosition;

/// How many problems are collected before the rest of the source is left unread.
pub(crate) const MOST_PROBLEMS: usize = 64;

/// One place that is not in the subset, or not CUE at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{position}: {construct}: {message}")]
pub struct CueProblem {
    /// Where it stands.
    pub position: SourcePosition,
    /// What it is called: "definition", "pattern constraint", "syntax" and so on.
    pub construct: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
}

/// All that keeps a source from being a program, in its order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct CueProblems(Vec<CueProblem>);

// === impl CueProblem ===

impl CueProblem {
    pub(crate) fn new(position: SourcePosition, construct: &'static str, message: impl Into<String>) -> Self {
        Self {
            position,
            construct,
            message: message.into(),
        }
    }

    /// Of what CUE forbids, too.
    pub(crate) fn syntax(position: SourcePosition, message: impl Into<String>) -> Self {
        Self::new(position, "syntax", message)
    }
}

// === impl CueProblems ===

impl CueProblems {
    /// The problems in the order of the source, if there are any.
    pub(crate) fn from_problems(mut problems: Vec<CueProblem>) -> Option<Self> {
        problems.sort_by_key(|problem| problem.position);
        problems.dedup();
        problems.truncate(MOST_PROBLEMS);
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// The problems, of which there is at least one.
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
