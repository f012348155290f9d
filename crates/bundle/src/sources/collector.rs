//! Reads files into memory, up to the limits of a bundle.

use std::io::Read;

use super::{
    error::SourceError,
    limits::{FILES, UNPACKED_BYTES},
};
use crate::parse::Files;

/// The files read so far, and the remaining limits.
#[derive(Debug)]
pub(super) struct FileCollector {
    files: Files,
    entries: usize,
    bytes: u64,
}

impl FileCollector {
    pub(super) fn new() -> Self {
        Self {
            files: Files::new(),
            entries: 0,
            bytes: 0,
        }
    }

    /// Counts a file, folder or link before it is read.
    pub(super) fn count(&mut self, file: &str) -> Result<(), SourceError> {
        self.entries += 1;
        if self.entries > FILES {
            return Err(SourceError::TooManyFiles {
                file: file.to_owned(),
            });
        }
        Ok(())
    }

    /// Reads `content`, with a declared size of `size` bytes, as `file`.
    pub(super) fn add(&mut self, file: &str, size: u64, content: impl Read) -> Result<(), SourceError> {
        let left = UNPACKED_BYTES - self.bytes;
        let too_large = || SourceError::TooLarge {
            file: file.to_owned(),
        };
        if size > left {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        // A file may grow while it is read.
        let read = content
            .take(left + 1)
            .read_to_end(&mut bytes)
            .map_err(|cause| SourceError::Read {
                file: file.to_owned(),
                cause,
            })?;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        if read > left {
            return Err(too_large());
        }
        self.bytes += read;
        if self.files.insert(file.to_owned(), bytes).is_some() {
            return Err(SourceError::Duplicate {
                file: file.to_owned(),
            });
        }
        Ok(())
    }

    /// The content read as `file`.
    pub(super) fn content(&self, file: &str) -> Option<&[u8]> {
        self.files.get(file).map(Vec::as_slice)
    }

    pub(super) fn into_files(self) -> Files {
        self.files
    }
}
