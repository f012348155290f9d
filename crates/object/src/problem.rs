//! What is wrong with a file of a bundle, and where.

use std::fmt;

use serde::Serialize;

use crate::text::OneLine;

/// A rule that a file can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name, in kebab case; stable across releases.
    pub name: &'static str,
    /// What the rule asks for, in one line.
    pub explanation: &'static str,
}

/// One problem of a bundle. Prints as `FILE: JSONPATH: message`, always on one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The file, relative to the bundle; `.` for the bundle as a whole.
    pub file: String,
    /// JSON path in the file; `$` for the whole of it. In a file of several documents `$[1]` is the second.
    pub path: String,
    /// The rule's name, stable across releases.
    pub rule: &'static str,
    /// What is wrong, with the offending names.
    pub message: String,
}

// === impl Problem ===

impl Problem {
    /// Sorts problems by file and path, the tenth item of a list after the second, and leaves out repetitions.
    pub fn sort(problems: &mut Vec<Self>) {
        problems.sort_by_cached_key(|problem| (problem.file.clone(), steps(&problem.path), problem.clone()));
        problems.dedup();
    }

    /// A problem of a whole file or folder of the bundle.
    pub fn of_bundle(file: &str, rule: Rule, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            path: "$".to_owned(),
            rule: rule.name,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file, path, message, ..
        } = self;
        write!(f, "{}: {}: {}", OneLine(file), OneLine(path), OneLine(message))
    }
}

/// The parts of a path between brackets and dots, numbers as numbers.
fn steps(path: &str) -> Vec<(String, u64)> {
    path.split(['[', ']', '.'])
        .map(|step| match step.parse() {
            Ok(index) => (String::new(), index),
            Err(_) => (step.to_owned(), 0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNTAX: Rule = Rule {
        name: "syntax",
        explanation: "",
    };

    #[test]
    fn problems_are_sorted_as_a_reader_counts() {
        let problem = |path: &str| Problem {
            path: path.to_owned(),
            ..Problem::of_bundle("a", SYNTAX, "")
        };
        let mut problems = ["$.a[10]", "$.a[2]", "$", "$.a[2].b", "$.a[2]"]
            .map(problem)
            .to_vec();
        Problem::sort(&mut problems);
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["$", "$.a[2]", "$.a[2].b", "$.a[10]"]);
    }
}
