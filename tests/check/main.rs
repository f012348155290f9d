//! `windlass check` and the sample bundles.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod command;
mod crd_upgrade;
mod samples;

use std::path::{Path, PathBuf};

fn bundles() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bundles")
}

/// Returns the names of the folders in `folder`, sorted.
fn folders(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
