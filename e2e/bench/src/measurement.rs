//! What a measurement comes to, as it is printed.

use std::fmt;

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub(super) tables: String,
    pub(super) failures: Vec<String>,
    pub(super) missed: Vec<String>,
    pub(super) summary: String,
}

impl Measurement {
    /// Whether no request failed and nothing was missed.
    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && self.missed.is_empty()
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.tables)?;
        for failure in &self.failures {
            writeln!(f, "failed: {failure}")?;
        }
        for missed in &self.missed {
            writeln!(f, "missed: {missed}")?;
        }
        f.write_str(&self.summary)
    }
}
