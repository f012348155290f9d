//! The compression of a layer.

use std::io::{BufReader, Read};

use flate2::read::MultiGzDecoder;

use super::zstd::ZstdFrames;

/// The compression in a layer's media type (OCI image specification, layer.md; Docker's image manifest
/// version 2, schema 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Plain,
    Gzip,
    Zstd,
}

impl Compression {
    pub(super) fn from_media_type(media_type: &str) -> Option<Self> {
        match media_type.strip_prefix("application/vnd.")? {
            "oci.image.layer.v1.tar"
            | "oci.image.layer.nondistributable.v1.tar"
            | "docker.image.rootfs.diff.tar" => Some(Self::Plain),
            "oci.image.layer.v1.tar+gzip"
            | "oci.image.layer.nondistributable.v1.tar+gzip"
            | "docker.image.rootfs.diff.tar.gzip"
            | "docker.image.rootfs.foreign.diff.tar.gzip" => Some(Self::Gzip),
            "oci.image.layer.v1.tar+zstd"
            | "oci.image.layer.nondistributable.v1.tar+zstd"
            | "docker.image.rootfs.diff.tar.zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Decompresses the archive in `content`: all members of gzip or all frames of zstd.
    pub(super) fn unpack<'a>(self, content: impl Read + 'a) -> Box<dyn Read + 'a> {
        match self {
            Self::Plain => Box::new(content),
            Self::Gzip => Box::new(MultiGzDecoder::new(content)),
            Self::Zstd => Box::new(ZstdFrames::new(BufReader::new(content))),
        }
    }
}
