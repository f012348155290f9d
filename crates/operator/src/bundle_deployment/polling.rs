//! Directories that BundleDeployments name: nothing tells of a change in one, so each is looked at from time to time.
//!
//! Only names, sizes and times are looked at. What has changed is reconciled at once, and again once it has stopped
//! changing: what is read in the middle of a copy is not believed (`BundleReconciler::load`).

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    time::Duration,
};

use windlass_cluster::{kinds, worker::Queue};
use windlass_object::object;

use super::loading::inside;
use crate::context::Context;

/// The most entries of a directory that are looked at; one with more is noticed by those.
const MOST: usize = 10_000;

/// What was seen of a directory at the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    stamp: u64,
    /// It was another one at the look before.
    is_new: bool,
}

/// Requeues every BundleDeployment whose directory has changed, forever; and once more when it has stopped
/// changing.
pub(super) async fn poll(context: &Context, queue: &Queue<String>, every: Duration) {
    let Some(root) = context.bundle_directory.clone() else {
        return std::future::pending().await;
    };
    let mut looks = HashMap::new();
    loop {
        tokio::time::sleep(every).await;
        let named = directories(context);
        let root = root.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let looked = named.into_iter().map(|(name, path)| {
                let stamp = inside(&root, &path).map_or(0, |folder| stamp(&folder));
                (name, stamp)
            });
            looked.collect::<Vec<_>>()
        });
        // Lost at shutdown only.
        let Ok(stamps) = looking.await else { continue };
        for name in changed(&mut looks, &stamps) {
            queue.add(name);
        }
    }
}

/// Each BundleDeployment that names a directory, with that.
fn directories(context: &Context) -> Vec<(String, String)> {
    let deployments = context.index.objects(&kinds::BUNDLE_DEPLOYMENT);
    let named = deployments.iter().filter_map(|deployment| {
        let name = object::text(deployment, "/metadata/name")?;
        let path = object::text(deployment, "/spec/source/directory/path")?;
        Some((name.to_owned(), path.to_owned()))
    });
    named.collect()
}

/// Those of which this look differs from the last one, or is the second that does not.
fn changed(looks: &mut HashMap<String, Look>, stamps: &[(String, u64)]) -> Vec<String> {
    looks.retain(|name, _| stamps.iter().any(|(known, _)| known == name));
    let mut changed = Vec::new();
    for (name, stamp) in stamps {
        let last = looks.get(name).copied();
        let is_new = last.is_some_and(|last| last.stamp != *stamp);
        if is_new || last.is_some_and(|last| last.is_new) {
            changed.push(name.clone());
        }
        let look = Look {
            stamp: *stamp,
            is_new,
        };
        looks.insert(name.clone(), look);
    }
    changed
}

/// A hash of the names, sizes and times of everything in a directory, or of an archive; links are not followed, but
/// where they lead is part of it.
fn stamp(path: &Path) -> u64 {
    let mut hash = DefaultHasher::new();
    let mut left = vec![path.to_owned()];
    let mut seen = 0;
    while let Some(path) = left.pop() {
        seen += 1;
        if seen > MOST {
            break;
        }
        path.hash(&mut hash);
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        metadata.len().hash(&mut hash);
        metadata.modified().ok().hash(&mut hash);
        path.read_link().ok().hash(&mut hash);
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            entries.sort();
            left.extend(entries);
        }
    }
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_when_it_comes_and_when_it_has_ended() {
        let mut looks = HashMap::new();
        let mut look = |stamp: u64| !changed(&mut looks, &[("a".to_owned(), stamp)]).is_empty();
        assert!(!look(1), "the first look tells nothing");
        assert!(!look(1));
        assert!(look(2));
        assert!(look(3), "it is still being copied");
        assert!(look(3), "it has ended");
        assert!(!look(3));
    }

    #[test]
    fn every_change_below_a_directory_makes_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut stamps = vec![stamp(root)];
        std::fs::create_dir(root.join("manifests")).unwrap();
        stamps.push(stamp(root));
        std::fs::write(root.join("manifests/csv.yaml"), "a").unwrap();
        stamps.push(stamp(root));
        std::fs::write(root.join("manifests/csv.yaml"), "ab").unwrap();
        stamps.push(stamp(root));
        std::os::unix::fs::symlink("one", root.join("..data")).unwrap();
        stamps.push(stamp(root));
        std::fs::remove_file(root.join("..data")).unwrap();
        std::os::unix::fs::symlink("two", root.join("..data")).unwrap();
        stamps.push(stamp(root));
        for pair in stamps.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
        assert_eq!(stamp(root), stamp(root));
    }
}
