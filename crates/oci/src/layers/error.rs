//! What layers are refused for.

use std::io;

use super::image_files::RATIO;

/// Why layers make no files.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// It is packed by something else.
    #[error(
        "layer {layer}: the media type {media_type:?} is not a tar archive, packed with gzip, zstd or not"
    )]
    MediaType {
        /// Which layer.
        layer: String,
        /// How it is packed.
        media_type: String,
    },
    /// It cannot be unpacked.
    #[error("layer {layer}: cannot be unpacked: {cause}")]
    Unpack {
        /// Which layer.
        layer: String,
        /// Why.
        cause: io::Error,
    },
    /// There is too much in it.
    #[error("layer {layer}: unpacked, the image has more than {limit} MiB")]
    TooLarge {
        /// Which layer.
        layer: String,
        /// The limit.
        limit: u64,
    },
    /// It is packed so tightly that it can only be meant to fill memory.
    #[error("layer {layer}: it unpacks to more than {RATIO} times its size")]
    Ratio {
        /// Which layer.
        layer: String,
    },
    /// There are too many files.
    #[error("layer {layer}: the image has more than {limit} files, folders and links")]
    TooManyEntries {
        /// Which layer.
        layer: String,
        /// The limit.
        limit: usize,
    },
    /// A path leads out of the image.
    #[error("layer {layer}: {path:?} leads out of the image")]
    PathOutside {
        /// Which layer.
        layer: String,
        /// The path as it is written.
        path: String,
    },
    /// A name is not UTF-8.
    #[error("layer {layer}: {path:?} has a name that is not UTF-8")]
    Name {
        /// Which layer.
        layer: String,
        /// The path, as far as it can be printed.
        path: String,
    },
    /// A link in a wanted folder leads to nothing that is kept.
    #[error("{path} is a link to {target:?}, which is not a file in the image's {folders}")]
    Link {
        /// The link.
        path: String,
        /// Where it leads.
        target: String,
        /// The folders that are read.
        folders: String,
    },
    /// A wanted folder is a file.
    #[error("{path} is not a folder in the image")]
    NotFolder {
        /// The folder.
        path: String,
    },
    /// Something is below a link or a file.
    #[error("layer {layer}: {path} is below {parent}, which is not a folder")]
    BelowFile {
        /// Which layer.
        layer: String,
        /// What is below.
        path: String,
        /// The link or file.
        parent: String,
    },
    /// A file is a device, a pipe or a socket.
    #[error("layer {layer}: {path} is neither a file nor a folder nor a link")]
    SpecialFile {
        /// Which layer.
        layer: String,
        /// The file.
        path: String,
    },
}
