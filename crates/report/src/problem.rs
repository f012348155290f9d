//! Problems that require action, and steps that finish on their own.

/// How soon a problem needs action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemSeverity {
    /// Calls fail, or will fail soon.
    Failing,
    /// Action is required, but nothing fails yet.
    Waiting,
}

/// A problem that requires action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedProblem {
    /// How soon the problem needs action.
    pub severity: ProblemSeverity,
    /// The affected object.
    pub subject: String,
    /// One word in CamelCase, as in conditions.
    pub reason: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// A step in progress that needs no action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportedStep {
    /// The affected object.
    pub(crate) subject: String,
    /// What Windlass does.
    pub(crate) what: String,
    /// What it is waiting for.
    pub(crate) message: String,
    /// For how long, if known.
    pub(crate) since: Option<String>,
}

/// A problem or a step in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportFinding {
    Problem(ReportedProblem),
    ReportedStep(ReportedStep),
}

impl ProblemSeverity {
    /// Returns the word for the severity on the page.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failing => "Failing",
            Self::Waiting => "Needs you",
        }
    }

    /// Returns the CSS class of the severity.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Waiting => "waiting",
        }
    }
}
