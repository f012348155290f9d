//! Problems of files with policies or cases.

use std::{fmt, path::Path};

use policy::PolicyProblem;
use serde::Serialize;
use windlass_object::text::OneLine;

/// A problem and its location in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PolicyFileProblem {
    /// The file, as specified.
    pub(super) file: String,
    /// The field, such as `$.spec.overrideRules[0].overriders.cue`.
    pub(super) path: String,
    /// The line in the program of that field, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    /// The column in that line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<usize>,
    pub(super) message: String,
}

impl PolicyFileProblem {
    /// Returns a problem of a field.
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

    /// Returns a problem of the whole file.
    pub(super) fn for_file(file: &Path, message: impl Into<String>) -> Self {
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
