//! Errors of sources, and the paths that belong to a bundle.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use super::limits::{FILES, UNPACKED_BYTES};

/// Why a source yields no bundle.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The folder, archive or file in it cannot be read.
    #[error("cannot be read: {cause}")]
    Read {
        /// Path of the file, relative to the bundle if the file is inside it.
        file: String,
        /// The system error. It is in the message, and so not [`std::error::Error::source`]: a problem is one
        /// line.
        cause: io::Error,
    },
    /// The file is something other than a folder or an archive.
    #[error("is neither a directory nor a .tar.gz archive")]
    Unsupported {
        /// The path of the source.
        file: String,
    },
    /// There is neither `manifests/` nor `metadata/`.
    #[error("is not a bundle: directory \"manifests\" not found")]
    NotABundle {
        /// The folder or archive.
        file: String,
    },
    /// The file exceeds the size limit of a bundle.
    #[error("is too large: the limit of a bundle is {} MiB unpacked", UNPACKED_BYTES >> 20)]
    TooLarge {
        /// The first file above the limit.
        file: String,
    },
    /// The file exceeds the limit on the number of files.
    #[error("is one file too many: the limit of a bundle is {FILES} files")]
    TooManyFiles {
        /// The first file above the limit.
        file: String,
    },
    /// The path is absolute or has a `..` component.
    #[error("has a path outside of the bundle")]
    PathOutside {
        /// The path as written.
        file: String,
    },
    /// The link points outside of the bundle, to a missing file or to itself.
    #[error("is a link to {target}, which is not a file of the bundle")]
    LinkOutside {
        /// The link, relative to the bundle.
        file: String,
        /// Its target, as written.
        target: String,
    },
    /// The file is a device, a pipe or a socket.
    #[error("is neither a file nor a directory")]
    SpecialFile {
        /// Path of the file, relative to the bundle if the file is inside it.
        file: String,
    },
    /// The name is not UTF-8.
    #[error("has a name that is not UTF-8")]
    Name {
        /// The printable part of the name.
        file: String,
    },
    /// An archive contains a name twice.
    #[error("occurs twice in the archive")]
    Duplicate {
        /// The file, relative to the bundle.
        file: String,
    },
}

/// The folders of a bundle that define its install. Others, such as `tests/`, are not read.
pub(super) const PARTS: [&str; 2] = ["manifests", "metadata"];

pub(super) fn is_part_of_bundle(file: &str) -> bool {
    file.split_once('/')
        .is_some_and(|(folder, _)| PARTS.contains(&folder))
}

/// Returns `path` with `/` as separator and without `.`.
///
/// # Errors
///
/// If it leaves its base folder, or is not UTF-8.
pub(super) fn relative(path: &Path) -> Result<PathBuf, SourceError> {
    let file = || path.display().to_string();
    let mut parts = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) if part.to_str().is_some() => parts.push(part),
            Component::Normal(_) => return Err(SourceError::Name { file: file() }),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(SourceError::PathOutside { file: file() });
            }
        }
    }
    Ok(parts)
}

impl SourceError {
    /// Returns the path of the file that caused the error, relative to the bundle if the file is inside it.
    pub fn file(&self) -> &str {
        match self {
            Self::Read { file, .. }
            | Self::Unsupported { file }
            | Self::NotABundle { file }
            | Self::TooLarge { file }
            | Self::TooManyFiles { file }
            | Self::PathOutside { file }
            | Self::LinkOutside { file, .. }
            | Self::SpecialFile { file }
            | Self::Name { file }
            | Self::Duplicate { file } => file,
        }
    }
}
