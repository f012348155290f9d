//! Rules of the code base that the compiler does not check.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod names;
mod purity;
mod words;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders with build output, downloads or third-party files.
const IGNORED: &[&str] = &["target", ".git", "corpora", "vectors", "node_modules"];

/// Returns the files in a folder of the repository that `is_wanted` accepts: their path relative to the root,
/// and their content.
fn files(folder: &str, is_wanted: impl Fn(&Path) -> bool) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let relative = path.strip_prefix(root).unwrap();
            if path.is_dir() {
                if !IGNORED.iter().any(|ignored| relative.ends_with(ignored)) {
                    folders.push(path);
                }
            } else if is_wanted(relative) {
                found.push((relative.to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

/// Returns all Rust files in a folder of the repository.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    files(folder, |path| {
        path.extension().is_some_and(|extension| extension == "rs")
    })
}

/// Returns a file without the tests at its end, to which the rules do not apply.
fn without_tests(source: &str) -> &str {
    source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
}
