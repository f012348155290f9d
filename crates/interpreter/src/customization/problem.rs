//! Problems of customizations.

use std::fmt::Display;

use json_path::Path;
use thiserror::Error;

/// A problem in a field of a customization.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {message}")]
pub struct CustomizationProblem {
    /// The path of the field, for example `spec.target.kind`.
    pub path: String,
    /// What is wrong with the field.
    pub message: String,
}

/// Collects problems of fields below a parent field.
#[derive(Debug, Default)]
pub(crate) struct FieldProblems {
    field: String,
    problems: Vec<CustomizationProblem>,
}

impl FieldProblems {
    /// Collects problems of the fields below `field`.
    pub(crate) fn under(field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problems: Vec::new(),
        }
    }

    /// Adds a problem of a field; an empty name means the parent field.
    pub(crate) fn add(&mut self, name: impl Display, message: impl Display) {
        let path = self.full_name(name);
        self.problems.push(CustomizationProblem {
            path,
            message: message.to_string(),
        });
    }

    /// Runs `check` with a child field as parent.
    pub(crate) fn in_field(&mut self, name: impl Display, check: impl FnOnce(&mut Self)) {
        let mut inner = Self::under(self.full_name(name));
        check(&mut inner);
        self.problems.extend(inner.problems);
    }

    /// Parses a path, or adds a problem.
    pub(crate) fn path(&mut self, name: impl Display, text: &str) -> Option<Path> {
        let parsed = Path::parse(text);
        parsed.map_err(|error| self.add(name, error)).ok()
    }

    /// Parses an optional path, or adds a problem.
    pub(crate) fn optional_path(&mut self, name: impl Display, text: Option<&str>) -> Option<Path> {
        self.path(name, text?)
    }

    /// Adds problems with complete paths.
    pub(crate) fn extend(&mut self, problems: Vec<CustomizationProblem>) {
        self.problems.extend(problems);
    }

    /// Returns a value if there are no problems.
    pub(crate) fn into_result<T>(
        self,
        value: impl FnOnce() -> Option<T>,
    ) -> Result<T, Vec<CustomizationProblem>> {
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

    pub(crate) fn into_problems(self) -> Vec<CustomizationProblem> {
        self.problems
    }
}
