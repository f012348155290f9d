//! The findings of checks.

use std::fmt;

use serde::Serialize;

use crate::check::CheckGroup;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DoctorSeverity {
    /// Something fails or will fail.
    Error,
    /// Something may fail, or was not checked.
    Warning,
    /// Something is in order or useful to know.
    Info,
}

/// What a check found about an object or another subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// How urgent the finding is.
    pub severity: DoctorSeverity,
    /// Subject of the check, which sorts findings in reports.
    pub group: CheckGroup,
    /// One word in CamelCase: the name of the check, or the reason of a condition.
    pub reason: String,
    /// The object, or a name for what has no object.
    pub subject: String,
    /// What was found and what to do next.
    pub message: String,
}

impl fmt::Display for DoctorSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}
