//! What keeps the house as it is: what the compiler does not see, and a reader relies on.

#![expect(clippy::unwrap_used, reason = "a file that cannot be read fails the test")]

mod names;
mod purity;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every Rust file below a folder of the repository, relative to the root, with its content.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root).unwrap().to_owned();
                found.push((relative, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

/// A file without the tests at its end, which may do what they like.
fn without_tests(source: &str) -> &str {
    source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
}
