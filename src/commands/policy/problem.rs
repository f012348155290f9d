//! What is wrong with a file of policies or cases.

use std::{fmt, path::Path};

use policy::PolicyProblem;
use serde::Serialize;
use windlass_object::text::OneLine;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PolicyFileProblem {
    /// The file, as it was given.
    pub(super) file: String,
    /// Where in its document, for example `$.spec.overrideRules[0].overriders.cue`.
    pub(super) path: String,
    /// The line of a program that is there, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    /// The column of that line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<usize>,
    /// What is wrong.
    pub(super) message: String,
}

// === impl PolicyFileProblem ===

impl PolicyFileProblem {
    /// Of a field.
    pub(super) fn new(file: &Path, problem: PolicyProblem) -> Self {
        let path = match problem.path.as_str() {
            "" => "$".to_owned(),
            path if path.starts_with('[') => format!("${path}"),
            path => format!("$.{path}"),
        };
        Self {
            file: file.display().to_string(),
            path,
            line: problem.position.map(|position| position.line),
            column: problem.position.map(|position| position.column),
            message: problem.message,
        }
    }

    /// Of the file as a whole.
    pub(super) fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self::new(file, PolicyProblem::new("", message))
    }
}

impl fmt::Display for PolicyFileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", OneLine(&self.file), OneLine(&self.path))?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", OneLine(&self.message))
    }
}
