//! A bundle, or one file of objects.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::limits::Collection;
use super::{Error, archive, directory};
use crate::Files;

/// What is at a path.
#[derive(Debug)]
pub enum Contents {
    /// A bundle, in a folder or an archive.
    Bundle(Files),
    /// A file of any other kind.
    File(Vec<u8>),
}

/// Reads the bundle or the file at `path`, or on standard input if that is `-`. A file may be as large as a bundle.
///
/// # Errors
///
/// The first thing that keeps it from being read; it names the file.
pub fn load_any(path: &Path) -> Result<Contents, Error> {
    let name = path.display().to_string();
    if path == Path::new("-") {
        return read(io::stdin().lock(), 0, &name);
    }
    let failed = |source| Error::Read {
        file: name.clone(),
        source,
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return directory::load(path).map(Contents::Bundle);
    }
    read(File::open(path).map_err(failed)?, metadata.len(), &name)
}

fn read(content: impl Read, size: u64, name: &str) -> Result<Contents, Error> {
    let mut collection = Collection::new();
    collection.add(name, size, content)?;
    let bytes = collection.into_files().remove(name).unwrap_or_default();
    if archive::is_archive(&bytes) {
        return archive::load(bytes.as_slice(), name).map(Contents::Bundle);
    }
    Ok(Contents::File(bytes))
}
