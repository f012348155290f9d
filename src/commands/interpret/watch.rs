//! Waiting for a change of files.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Files and folders, as they were last seen.
#[derive(Debug)]
pub(super) struct WatchedFiles {
    paths: Vec<PathBuf>,
    seen: Vec<Seen>,
}

/// A file as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    path: PathBuf,
    modified: Option<SystemTime>,
    length: u64,
}

const PERIOD: Duration = Duration::from_millis(300);

// === impl WatchedFiles ===

impl WatchedFiles {
    /// As they are now.
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let seen = look(&paths);
        Self { paths, seen }
    }

    /// Waits until one is otherwise than it was seen last.
    pub(super) async fn changed(&mut self) {
        loop {
            let now = look(&self.paths);
            if now != self.seen {
                self.seen = now;
                return;
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
}

fn look(paths: &[PathBuf]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for path in paths {
        look_at(path, &mut seen);
    }
    seen
}

/// What is not there is seen as that.
fn look_at(path: &Path, seen: &mut Vec<Seen>) {
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
        look_at(&path, seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_comes_changes_or_goes_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        let mut watched = WatchedFiles::new(vec![folder.path().to_owned()]);
        fs::write(&file, "a").unwrap();
        watched.changed().await;
        fs::write(&file, "ab").unwrap();
        watched.changed().await;
        fs::remove_file(&file).unwrap();
        watched.changed().await;
        let again = tokio::time::timeout(2 * PERIOD, watched.changed()).await;
        assert!(again.is_err(), "nothing has changed");
    }
}
