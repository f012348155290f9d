//! Problems of policies.

use std::fmt;

/// A problem of a field in a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The field, for example `spec.overrideRules[0].overriders.cue`.
    pub path: String,
    /// The position in the program or expression that the field contains.
    pub position: Option<ProgramPosition>,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// Where in a program a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramPosition {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
}

/// A collection of problems below a field.
#[derive(Debug, Default)]
pub(crate) struct PolicyProblems {
    field: String,
    problems: Vec<PolicyProblem>,
}

impl PolicyProblem {
    /// Creates a problem of a whole field.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            position: None,
            message: message.into(),
        }
    }

    /// Prefixes the path with `field`.
    #[must_use]
    pub fn below(mut self, field: &str) -> Self {
        self.path = join_path(field, &self.path);
        self
    }
}

impl std::error::Error for PolicyProblem {}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.path)?;
        if let Some(position) = self.position {
            write!(formatter, "{position}: ")?;
        }
        formatter.write_str(&self.message)
    }
}

impl fmt::Display for ProgramPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

impl PolicyProblems {
    /// Creates an empty collection for fields below `field`.
    pub(crate) fn below(field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problems: Vec::new(),
        }
    }

    /// Adds a problem of a field; of the collection's own field if the name is empty.
    pub(crate) fn note(&mut self, name: impl fmt::Display, message: impl fmt::Display) {
        let path = join_path(&self.field, &name.to_string());
        self.problems.push(PolicyProblem::new(path, message.to_string()));
    }

    /// Runs `check` with a collection for the fields below `name`.
    pub(crate) fn within<T>(&mut self, name: impl fmt::Display, check: impl FnOnce(&mut Self) -> T) -> T {
        let mut inner = Self::below(join_path(&self.field, &name.to_string()));
        let checked = check(&mut inner);
        self.problems.extend(inner.problems);
        checked
    }

    /// Adds problems whose paths are relative to the field `name`.
    pub(crate) fn extend(&mut self, name: impl fmt::Display, problems: Vec<PolicyProblem>) {
        let field = join_path(&self.field, &name.to_string());
        self.problems
            .extend(problems.into_iter().map(|problem| problem.below(&field)));
    }

    pub(crate) fn into_problems(self) -> Vec<PolicyProblem> {
        self.problems
    }
}

/// Joins two paths; either may be empty.
fn join_path(field: &str, name: &str) -> String {
    let dot = if field.is_empty() || name.is_empty() || name.starts_with('[') {
        ""
    } else {
        "."
    };
    format!("{field}{dot}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_field_line_and_column() {
        let mut problems = PolicyProblems::below("spec");
        problems.within("rules[0]", |problems| {
            problems.note("", "must not be empty");
            let problem = PolicyProblem {
                position: Some(ProgramPosition { line: 2, column: 7 }),
                ..PolicyProblem::new("", "expected }")
            };
            problems.extend("cue", vec![problem]);
        });
        let told: Vec<_> = problems.into_problems().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "spec.rules[0]: must not be empty",
                "spec.rules[0].cue: line 2, column 7: expected }"
            ]
        );
    }
}
