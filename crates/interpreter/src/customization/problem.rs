//! What is wrong with a customization, and where.

use std::fmt::Display;

use json_path::Path;
use thiserror::Error;

/// What is wrong with a field of a customization.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {message}")]
pub struct CustomizationProblem {
    /// The field, for example `spec.target.kind`.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// What is wrong with the fields below one.
#[derive(Debug, Default)]
pub(crate) struct FieldProblems {
    field: String,
    problems: Vec<CustomizationProblem>,
}

// === impl FieldProblems ===

impl FieldProblems {
    /// None yet, of the fields below `field`.
    pub(crate) fn below(field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problems: Vec::new(),
        }
    }

    /// Notes that something is wrong with a field; with the one itself where the name is empty.
    pub(crate) fn note(&mut self, name: impl Display, message: impl Display) {
        let path = self.full_name(name);
        self.problems.push(CustomizationProblem {
            path,
            message: message.to_string(),
        });
    }

    /// Has what is wrong with the fields below one noted.
    pub(crate) fn within(&mut self, name: impl Display, check: impl FnOnce(&mut Self)) {
        let mut inner = Self::below(self.full_name(name));
        check(&mut inner);
        self.problems.extend(inner.problems);
    }

    /// A path, if it is one.
    pub(crate) fn path(&mut self, name: impl Display, text: &str) -> Option<Path> {
        let parsed = Path::parse(text);
        parsed.map_err(|error| self.note(name, error)).ok()
    }

    /// A path, if one is given and it is one.
    pub(crate) fn optional_path(&mut self, name: impl Display, text: Option<&str>) -> Option<Path> {
        self.path(name, text?)
    }

    /// Adds what is wrong elsewhere.
    pub(crate) fn extend(&mut self, problems: Vec<CustomizationProblem>) {
        self.problems.extend(problems);
    }

    /// A value, unless something is wrong.
    pub(crate) fn or<T>(self, value: impl FnOnce() -> Option<T>) -> Result<T, Vec<CustomizationProblem>> {
        match value() {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(self.problems),
        }
    }

    fn full_name(&self, name: impl Display) -> String {
        let mut path = self.field.clone();
        let name = name.to_string();
        if !path.is_empty() && !name.is_empty() && !name.starts_with('[') {
            path.push('.');
        }
        path.push_str(&name);
        path
    }

    /// All of them.
    pub(crate) fn into_problems(self) -> Vec<CustomizationProblem> {
        self.problems
    }
}
