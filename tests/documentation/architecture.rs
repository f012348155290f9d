//! ARCHITECTURE.md names only files, folders and symbols that exist, and stays short.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;

use crate::page::{Page, root};

const MAX_BYTES: usize = 15_000;

/// The folders whose paths may be abbreviated, and whose Rust files define the symbols.
const FOLDERS: [&str; 5] = ["bundles", "crates", "e2e", "src", "tests"];

fn names() -> BTreeSet<String> {
    static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new("`([^`\n]+)`").unwrap());
    let text = Page::read("ARCHITECTURE.md".into()).without_code();
    NAME.captures_iter(&text)
        .map(|found| found[1].to_owned())
        .collect()
}

/// Adds everything in `folder`, relative to the root of the repository.
fn list(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() && !path.ends_with("target") {
            list(&path, found);
        }
        found.push(path);
    }
}

fn paths() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        list(Path::new(folder), &mut found);
    }
    found
}

/// A file and its text.
type SourceFile = (PathBuf, String);

/// Reports whether a file defines `name`, or quotes it, as it does the name of an environment variable.
fn defines(source: &str, name: &str) -> bool {
    let keywords = "const|enum|fn|macro_rules!|mod|static|struct|trait|type";
    let pattern = format!(r#"\b(?:{keywords}) {name}\b|"{name}""#);
    Regex::new(&pattern).unwrap().is_match(source)
}

/// Reports whether a symbol such as `Type::function`, `module::function`, `CamelCase` or `macro!` exists.
fn is_defined(symbol: &str, files: &[SourceFile]) -> bool {
    let symbol = symbol.trim_end_matches('!');
    let Some((owner, name)) = symbol.rsplit_once("::") else {
        return files.iter().any(|(_, source)| defines(source, symbol));
    };
    let implements = Regex::new(&format!(r"\b(?:enum|impl|trait)\b[^{{\n]*\b{owner}\b")).unwrap();
    files.iter().any(|(path, source)| {
        let is_of_owner = path.iter().any(|part| part == owner) || implements.is_match(source);
        let is_foreign = || source.contains(&format!("use {symbol};"));
        (is_of_owner && defines(source, name)) || is_foreign()
    })
}

#[test]
fn every_named_path_exists() {
    let paths = paths();
    let is_path =
        |name: &&String| name.contains('/') && !name.contains(' ') && !name.starts_with("windlass.dev/");
    let exists = |name: &String| root().join(name).exists() || paths.iter().any(|path| path.ends_with(name));
    let missing: Vec<_> = names()
        .into_iter()
        .filter(|name| is_path(&name) && !exists(name))
        .collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md names paths that do not exist: {missing:#?}"
    );
}

#[test]
fn every_named_symbol_is_defined() {
    static SYMBOL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^(?:\w+::\w+|[A-Z]\w+[a-zA-Z]|\w+!)$").unwrap());
    let rust = paths()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let files: Vec<_> = rust
        .map(|path| {
            let source = fs::read_to_string(root().join(&path)).unwrap();
            (path, source)
        })
        .collect();
    let missing: Vec<_> = names()
        .into_iter()
        .filter(|name| SYMBOL.is_match(name) && !is_defined(name, &files))
        .collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md names symbols that are not defined: {missing:#?}"
    );
}

#[test]
fn every_crate_is_described() {
    let names = names();
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let missing: Vec<_> = crates
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !names.contains(name))
        .collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md does not describe {missing:?}"
    );
}

#[test]
fn the_architecture_is_short() {
    let length = Page::read("ARCHITECTURE.md".into()).text.len();
    assert!(
        length < MAX_BYTES,
        "ARCHITECTURE.md has {length} bytes, not below {MAX_BYTES}"
    );
}
