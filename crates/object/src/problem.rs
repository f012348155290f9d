//! Problems of bundle files.

use std::fmt;

use serde::Serialize;

use crate::text::OneLine;

/// A rule for bundle files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name, in kebab case; stable across releases.
    pub name: &'static str,
    /// What the rule requires, in one line.
    pub explanation: &'static str,
}

/// A problem of a bundle. Prints as `FILE: JSONPATH: message`, always on one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The file, relative to the bundle; `.` for the bundle as a whole.
    pub file: String,
    /// JSON path in the file; `$` for the whole file. In a file of several documents `$[1]` is the second.
    pub path: String,
    /// The rule's name, stable across releases.
    pub rule: &'static str,
    /// What is wrong, with the offending names.
    pub message: String,
}

impl Problem {
    /// Sorts problems by file and path, indices by number, and removes duplicates.
    pub fn sort(problems: &mut Vec<Self>) {
        problems.sort_by_cached_key(|problem| (problem.file.clone(), steps(&problem.path), problem.clone()));
        problems.dedup();
    }

    /// Creates a problem of a whole file or folder of the bundle.
    pub fn in_bundle(file: &str, rule: Rule, message: impl Into<String>) -> Self {
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

/// Splits a path at brackets and dots, with numbers as numbers.
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
    fn indices_are_sorted_by_number() {
        let problem = |path: &str| Problem {
            path: path.to_owned(),
            ..Problem::in_bundle("a", SYNTAX, "")
        };
        let mut problems = ["$.a[10]", "$.a[2]", "$", "$.a[2].b", "$.a[2]"]
            .map(problem)
            .to_vec();
        Problem::sort(&mut problems);
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["$", "$.a[2]", "$.a[2].b", "$.a[10]"]);
    }
}
