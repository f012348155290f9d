//! Errors in layers.

use std::io;

use super::image_files::RATIO;

/// Why layers cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum LayerError {
    /// The media type is unsupported.
    #[error(
        "layer {layer}: the media type {media_type:?} is not that of a tar archive, uncompressed or compressed with gzip or zstd"
    )]
    MediaType { layer: String, media_type: String },
    /// The layer cannot be unpacked.
    #[error("layer {layer}: cannot be unpacked: {cause}")]
    Unpack { layer: String, cause: io::Error },
    /// The image is too large.
    #[error("layer {layer}: unpacked, the image has more than {limit} MiB")]
    TooLarge {
        layer: String,
        /// The limit in MiB.
        limit: u64,
    },
    /// The compression ratio is that of a decompression bomb.
    #[error("layer {layer}: it unpacks to more than {RATIO} times its size")]
    Ratio { layer: String },
    /// The image has too many files.
    #[error("layer {layer}: the image has more than {limit} files, folders and links")]
    TooManyEntries { layer: String, limit: usize },
    /// A path is outside of the image.
    #[error("layer {layer}: {path:?} is outside of the image")]
    PathOutside {
        layer: String,
        /// The path as written.
        path: String,
    },
    /// A name is not UTF-8.
    #[error("layer {layer}: {path:?} has a name that is not UTF-8")]
    Name {
        layer: String,
        /// The printable part of the path.
        path: String,
    },
    /// The target of a link in a wanted folder is not extracted.
    #[error("{path} is a link to {target:?}, which is not a file in the image's {folders}")]
    Link {
        path: String,
        target: String,
        /// The folders that are extracted.
        folders: String,
    },
    /// A wanted folder is a file.
    #[error("{path} is not a folder in the image")]
    NotFolder { path: String },
    /// An entry is below a link or a file.
    #[error("layer {layer}: {path} is below {parent}, which is not a folder")]
    BelowFile {
        layer: String,
        path: String,
        /// The link or file.
        parent: String,
    },
    /// A file is a device, a pipe or a socket.
    #[error("layer {layer}: {path} is neither a file nor a folder nor a link")]
    SpecialFile { layer: String, path: String },
}
