//! Names are unique, and files stay short, so that code is easy to find.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{sources, without_tests};

/// Names that may be defined repeatedly: each command and program has its own arguments.
const REPEATED: &[&str] = &["Args", "Arguments"];

/// The maximal length of a file in lines.
const LONGEST: usize = 500;

/// Returns all Rust files of the repository.
fn rust_files() -> Vec<(PathBuf, String)> {
    let files: Vec<_> = ["src", "crates", "e2e", "tests"]
        .into_iter()
        .flat_map(sources)
        .collect();
    assert!(files.len() > 100, "no sources found");
    files
}

/// Returns the name of the type that a line defines, if it is visible to other modules.
fn visible_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let rest = rest.strip_prefix(' ')?;
    let (keyword, rest) = rest.split_once(' ')?;
    let name = rest
        .split(|character: char| !character.is_alphanumeric() && character != '_')
        .next()?;
    // In a macro, `$name` is not a type name.
    let is_type = matches!(keyword, "struct" | "enum" | "trait" | "type" | "union") && !name.is_empty();
    is_type.then_some(name)
}

#[test]
fn a_type_name_means_one_thing() {
    let mut defined = BTreeMap::<String, Vec<String>>::new();
    for (path, source) in rust_files() {
        if path.iter().any(|part| part == "tests") || path.ends_with("tests.rs") {
            continue;
        }
        for name in without_tests(&source).lines().filter_map(visible_type) {
            let places = defined.entry(name.to_owned()).or_default();
            places.push(path.display().to_string());
        }
    }
    defined.retain(|name, places| places.len() > 1 && !REPEATED.contains(&name.as_str()));
    assert!(defined.is_empty(), "{defined:#?}");
}

#[test]
fn a_file_has_one_subject() {
    let long: Vec<String> = rust_files()
        .iter()
        .map(|(path, source)| (path, source.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn definitions_are_distinguished_from_uses() {
    assert_eq!(visible_type("pub struct Name<T> {"), Some("Name"));
    assert_eq!(visible_type("    pub(in crate::a) type Name = u8;"), Some("Name"));
    assert_eq!(visible_type("pub fn name() {"), None);
    assert_eq!(visible_type("struct Hidden;"), None);
}
