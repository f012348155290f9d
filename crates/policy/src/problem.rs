//! What is wrong with a policy, and where.

use std::fmt;

/// What is wrong with a field of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The field, for example `spec.overrideRules[0].overriders.cue`.
    pub path: String,
    /// Where in a program or an expression that the field holds.
    pub position: Option<ProgramPosition>,
    /// What is wrong.
    pub message: String,
}

/// A place in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramPosition {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
}

/// What is wrong with the fields below one.
#[derive(Debug, Default)]
pub(crate) struct PolicyProblems {
    field: String,
    problems: Vec<PolicyProblem>,
}

// === impl PolicyProblem ===

impl PolicyProblem {
    /// What is wrong with a field as a whole.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            position: None,
            message: message.into(),
        }
    }

    /// The same of a field below `field`.
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

// === impl ProgramPosition ===

impl fmt::Display for ProgramPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

// === impl PolicyProblems ===

impl PolicyProblems {
    /// None yet, of the fields below `field`.
    pub(crate) fn below(field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problems: Vec::new(),
        }
    }

    /// Notes that something is wrong with a field; with the one itself where the name is empty.
    pub(crate) fn note(&mut self, name: impl fmt::Display, message: impl fmt::Display) {
        let path = join_path(&self.field, &name.to_string());
        self.problems.push(PolicyProblem::new(path, message.to_string()));
    }

    /// Has what is wrong with the fields below one noted.
    pub(crate) fn within<T>(&mut self, name: impl fmt::Display, check: impl FnOnce(&mut Self) -> T) -> T {
        let mut inner = Self::below(join_path(&self.field, &name.to_string()));
        let checked = check(&mut inner);
        self.problems.extend(inner.problems);
        checked
    }

    /// Notes what is wrong with a field, or with one below it, as its own subject tells it.
    pub(crate) fn extend(&mut self, name: impl fmt::Display, problems: Vec<PolicyProblem>) {
        let field = join_path(&self.field, &name.to_string());
        self.problems
            .extend(problems.into_iter().map(|problem| problem.below(&field)));
    }

    /// All of them.
    pub(crate) fn into_problems(self) -> Vec<PolicyProblem> {
        self.problems
    }
}

/// The path of a field below another; either may be empty.
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
