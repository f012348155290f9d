//! Reads a bundle, or a single file of objects.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::collector::FileCollector;
use super::{archive, directory, error::SourceError};
use crate::parse::Files;

/// A bundle or a single file, read from a path.
#[derive(Debug)]
pub enum PathContents {
    /// A bundle, in a folder or an archive.
    Bundle(Files),
    /// A file of any other kind.
    File(Vec<u8>),
}

/// Reads the bundle or file at `path`, or standard input if it is `-`. The size limit of a bundle applies to
/// files too.
///
/// # Errors
///
/// The first problem that prevents reading; it names the file.
pub fn load_any(path: &Path) -> Result<PathContents, SourceError> {
    let name = path.display().to_string();
    if path == Path::new("-") {
        return read(io::stdin().lock(), 0, &name);
    }
    let failed = |cause| SourceError::Read {
        file: name.clone(),
        cause,
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return directory::load(path).map(PathContents::Bundle);
    }
    read(File::open(path).map_err(failed)?, metadata.len(), &name)
}

fn read(content: impl Read, size: u64, name: &str) -> Result<PathContents, SourceError> {
    let mut collection = FileCollector::new();
    collection.add(name, size, content)?;
    let bytes = collection.into_files().remove(name).unwrap_or_default();
    if archive::is_archive(&bytes) {
        return archive::load(bytes.as_slice(), name).map(PathContents::Bundle);
    }
    Ok(PathContents::File(bytes))
}
