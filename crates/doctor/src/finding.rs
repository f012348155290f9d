//! What was found.

use std::fmt;

use serde::Serialize;

use crate::check::CheckGroup;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DoctorSeverity {
    /// Something fails, or will.
    Error,
    /// Something may fail, or was not looked at.
    Warning,
    /// Something is as it should be, or good to know.
    Info,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// How much it matters.
    pub severity: DoctorSeverity,
    /// What it is about.
    pub group: CheckGroup,
    /// One word in CamelCase: the name of the check, or the reason of a condition.
    pub reason: String,
    /// The object that it is about, or what stands for one.
    pub subject: String,
    /// What is, and what to do next.
    pub message: String,
}

// === impl DoctorSeverity ===

impl fmt::Display for DoctorSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}
