//! A bundle in a folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::collector::FileCollector;
use super::error::{PARTS, SourceError, relative};
use crate::parse::Files;

/// Reads `manifests/` and `metadata/` of the bundle in `folder`.
///
/// Links are followed within the folder.
///
/// # Errors
///
/// The first file that cannot be read or is not allowed in a bundle.
pub fn load(folder: &Path) -> Result<Files, SourceError> {
    let root = folder.canonicalize().map_err(|cause| read_error(folder, cause))?;
    if !PARTS.iter().any(|part| root.join(part).is_dir()) {
        return Err(SourceError::NotABundle {
            file: folder.display().to_string(),
        });
    }
    let mut walk = Walk {
        root,
        collection: FileCollector::new(),
    };
    for part in PARTS {
        if walk.root.join(part).symlink_metadata().is_ok() {
            walk.visit(Path::new(part))?;
        }
    }
    Ok(walk.collection.into_files())
}

/// A traversal of a folder.
struct Walk {
    /// The bundle's folder, with links resolved.
    root: PathBuf,
    collection: FileCollector,
}

impl Walk {
    /// Reads the file or folder `path`, relative to the root.
    fn visit(&mut self, path: &Path) -> Result<(), SourceError> {
        let name = relative(path)?.display().to_string();
        self.collection.count(&name)?;
        let target = self.resolve(path)?;
        let metadata = fs::metadata(&target).map_err(|cause| read_error(path, cause))?;
        if metadata.is_dir() {
            return self.visit_folder(path, &target);
        }
        // Opening a pipe would block until it has a writer.
        if !metadata.is_file() {
            return Err(SourceError::SpecialFile { file: name });
        }
        let file = File::open(&target).map_err(|cause| read_error(path, cause))?;
        self.collection.add(&name, metadata.len(), file)
    }

    fn visit_folder(&mut self, path: &Path, target: &Path) -> Result<(), SourceError> {
        let entries = fs::read_dir(target).map_err(|cause| read_error(path, cause))?;
        for entry in entries {
            let entry = entry.map_err(|cause| read_error(path, cause))?;
            self.visit(&path.join(entry.file_name()))?;
        }
        Ok(())
    }

    /// Resolves `path`, which must stay in the root; a folder must not contain itself.
    fn resolve(&self, path: &Path) -> Result<PathBuf, SourceError> {
        let link = self.root.join(path);
        let metadata = link.symlink_metadata().map_err(|cause| read_error(path, cause))?;
        if !metadata.is_symlink() {
            return Ok(link);
        }
        let outside = || SourceError::LinkOutside {
            file: path.display().to_string(),
            target: fs::read_link(&link).unwrap_or_default().display().to_string(),
        };
        let target = link.canonicalize().map_err(|_| outside())?;
        // A link to a parent folder would be followed forever.
        let holds_link = target.is_dir() && link.parent().is_some_and(|parent| parent.starts_with(&target));
        if !target.starts_with(&self.root) || holds_link {
            return Err(outside());
        }
        Ok(target)
    }
}

fn read_error(path: &Path, cause: std::io::Error) -> SourceError {
    SourceError::Read {
        file: path.display().to_string(),
        cause,
    }
}
