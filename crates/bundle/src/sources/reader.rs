//! Reads the files of a bundle from a path.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use super::error::SourceError;
use super::{archive, directory};
use crate::parse::Files;

/// Reads the bundle at `path`: a folder, a `.tar.gz` (or `.tar`) of one, or `-` for an archive on standard
/// input.
///
/// # Errors
///
/// The first problem that prevents reading; it names the file.
pub fn load(path: &Path) -> Result<Files, SourceError> {
    if path == Path::new("-") {
        return archive::load(io::stdin().lock(), "-");
    }
    let read = |cause| SourceError::Read {
        file: path.display().to_string(),
        cause,
    };
    let kind = fs::metadata(path).map_err(read)?.file_type();
    if kind.is_dir() {
        return directory::load(path);
    }
    if !kind.is_file() {
        return Err(SourceError::SpecialFile {
            file: path.display().to_string(),
        });
    }
    archive::load(File::open(path).map_err(read)?, &path.display().to_string())
}
