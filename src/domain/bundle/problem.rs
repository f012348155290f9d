//! What is wrong with a bundle, and where.

use std::fmt;

use serde::Serialize;

/// One problem of a bundle. Prints as `FILE: JSONPATH: message`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The file, relative to the bundle; `.` for the bundle as a whole.
    pub file: String,
    /// JSON path in the file; `$` for the whole of it.
    pub path: String,
    /// The rule's name, stable across releases.
    pub rule: &'static str,
    /// What is wrong, with the offending names.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.file, self.path, self.message)
    }
}
