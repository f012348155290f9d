//! Detection of file changes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Files and folders with their last observed state.
#[derive(Debug)]
pub(super) struct WatchedFiles {
    paths: Vec<PathBuf>,
    seen: Vec<Seen>,
}

/// The observed state of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    path: PathBuf,
    modified: Option<SystemTime>,
    length: u64,
}

const PERIOD: Duration = Duration::from_millis(300);

impl WatchedFiles {
    /// Observes the current state.
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let seen = snapshot(&paths);
        Self { paths, seen }
    }

    /// Waits until a file differs from its last observed state.
    pub(super) async fn wait_for_change(&mut self) {
        loop {
            let now = snapshot(&self.paths);
            if now != self.seen {
                self.seen = now;
                return;
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
}

fn snapshot(paths: &[PathBuf]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for path in paths {
        add_snapshot(path, &mut seen);
    }
    seen
}

/// A missing file is also a state.
fn add_snapshot(path: &Path, seen: &mut Vec<Seen>) {
    let metadata = fs::metadata(path).ok();
    seen.push(Seen {
        path: path.to_owned(),
        modified: metadata.as_ref().and_then(|metadata| metadata.modified().ok()),
        length: metadata.as_ref().map_or(0, fs::Metadata::len),
    });
    let is_folder = metadata.is_some_and(|metadata| metadata.is_dir()) && !path.is_symlink();
    let entries = is_folder.then(|| fs::read_dir(path).ok()).flatten();
    let mut paths: Vec<_> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        add_snapshot(&path, seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn created_changed_and_deleted_files_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        let mut watched = WatchedFiles::new(vec![folder.path().to_owned()]);
        fs::write(&file, "a").unwrap();
        watched.wait_for_change().await;
        fs::write(&file, "ab").unwrap();
        watched.wait_for_change().await;
        fs::remove_file(&file).unwrap();
        watched.wait_for_change().await;
        let again = tokio::time::timeout(2 * PERIOD, watched.wait_for_change()).await;
        assert!(again.is_err(), "nothing has changed");
    }
}
