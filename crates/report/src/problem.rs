//! What needs somebody, or goes on by itself.

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemSeverity {
    /// Calls fail, or will fail soon.
    Failing,
    /// Somebody has to act, and nothing fails yet.
    Waiting,
}

/// Something that needs somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedProblem {
    /// How much it matters.
    pub severity: ProblemSeverity,
    /// The object that it is about.
    pub subject: String,
    /// One word in CamelCase, as in conditions.
    pub reason: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Something that goes on by itself, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportedStep {
    /// The object that it is about.
    pub(crate) subject: String,
    /// What goes on.
    pub(crate) what: String,
    /// What it waits for.
    pub(crate) message: String,
    /// For how long, where that is known.
    pub(crate) since: Option<String>,
}

/// What becomes of something: at most one problem, or something that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportFinding {
    Problem(ReportedProblem),
    ReportedStep(ReportedStep),
}

// === impl ProblemSeverity ===

impl ProblemSeverity {
    /// What a page calls it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failing => "Failing",
            Self::Waiting => "Needs you",
        }
    }

    /// The class of its elements.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Waiting => "waiting",
        }
    }
}
