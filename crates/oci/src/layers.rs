//! The files that the layers of an image make, one on top of the other (OCI image specification, layer.md).

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
    rc::Rc,
};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use tar::{Archive, EntryType};

/// How much of a stranger's image is unpacked.
#[derive(Clone, Copy, Debug)]
pub struct LayerLimits {
    /// How many bytes all layers have, unpacked.
    pub bytes: u64,
    /// How many files, folders and links there are in all layers.
    pub entries: usize,
}

/// The files of an image, as its layers make them.
///
/// Only what is in the wanted folders is kept; the rest is counted and left out.
pub struct ImageFiles {
    limits: LayerLimits,
    folders: Vec<String>,
    bytes: u64,
    entries: usize,
    paths: BTreeMap<String, Node>,
}

enum Node {
    Folder,
    File(Vec<u8>),
    /// Where a link leads, from the root; `None` for out of the image.
    Link(Option<String>, String),
}

/// What a layer does to those below.
#[derive(Default)]
struct Layer {
    nodes: BTreeMap<String, Node>,
    removed: BTreeSet<String>,
    opaque: BTreeSet<String>,
}

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

/// How many times its size a layer may have, unpacked, once it is larger than 4 MiB.
pub const RATIO: u64 = 200;

/// So many bytes are unpacked whatever the ratio.
const RATIO_FREE: u64 = 4 << 20;

/// How many links are followed, one after the other.
const LINKS: usize = 40;

/// The largest window of zstd: what RFC 8878 §3.1.1.1.2 recommends decoders to support.
const ZSTD_WINDOW: u64 = 8 << 20;

const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

// === impl ImageFiles ===

impl ImageFiles {
    /// No files yet; those below `folders` will be kept.
    pub fn new(folders: &[&str], limits: LayerLimits) -> Self {
        Self {
            limits,
            folders: folders.iter().map(|&folder| folder.to_owned()).collect(),
            bytes: 0,
            entries: 0,
            paths: BTreeMap::new(),
        }
    }

    /// Puts the next layer on top.
    ///
    /// # Errors
    ///
    /// The first thing in it that may not be in an image.
    pub fn add(&mut self, name: &str, media_type: &str, content: &[u8]) -> Result<(), LayerError> {
        let plain = media_type.strip_prefix("application/vnd.").unwrap_or_default();
        let packing = match plain {
            "oci.image.layer.v1.tar"
            | "oci.image.layer.nondistributable.v1.tar"
            | "docker.image.rootfs.diff.tar" => "",
            "oci.image.layer.v1.tar+gzip"
            | "oci.image.layer.nondistributable.v1.tar+gzip"
            | "docker.image.rootfs.diff.tar.gzip"
            | "docker.image.rootfs.foreign.diff.tar.gzip" => "gzip",
            "oci.image.layer.v1.tar+zstd"
            | "oci.image.layer.nondistributable.v1.tar+zstd"
            | "docker.image.rootfs.diff.tar.zstd" => "zstd",
            _ => {
                return Err(LayerError::MediaType {
                    layer: name.to_owned(),
                    media_type: media_type.to_owned(),
                });
            }
        };
        let unpack = |cause| LayerError::Unpack {
            layer: name.to_owned(),
            cause,
        };
        let layer = match packing {
            "gzip" => self.read(name, content.len(), MultiGzDecoder::new(content))?,
            "zstd" => {
                // The window is allocated as the header says; a stranger's header is looked at first.
                if zstd_window(content).is_none_or(|window| window > ZSTD_WINDOW) {
                    let cause = io::Error::other("is not zstd with a window of 8 MiB at most");
                    return Err(unpack(cause));
                }
                let decoder =
                    StreamingDecoder::new(content).map_err(|error| unpack(io::Error::other(error)))?;
                self.read(name, content.len(), decoder)?
            }
            _ => self.read(name, content.len(), content)?,
        };
        self.put(name, layer)
    }

    /// The files, with what links lead to in their place.
    ///
    /// # Errors
    ///
    /// When a link leads to nothing that is kept.
    pub fn into_files(self) -> Result<BTreeMap<String, Vec<u8>>, LayerError> {
        let mut files = BTreeMap::new();
        // What a link repeats counts as if it were there twice.
        let mut bytes = 0;
        for (path, node) in &self.paths {
            let content = match node {
                Node::Folder => continue,
                Node::File(content) => content,
                Node::Link(target, written) => {
                    self.follow(target.as_deref()).ok_or_else(|| LayerError::Link {
                        path: path.clone(),
                        target: written.clone(),
                        folders: self.folders.join(" and "),
                    })?
                }
            };
            bytes += content.len() as u64;
            if bytes > self.limits.bytes {
                return Err(self.too_large(path));
            }
            files.insert(path.clone(), content.clone());
        }
        Ok(files)
    }

    fn follow<'a>(&'a self, mut target: Option<&'a str>) -> Option<&'a Vec<u8>> {
        for _ in 0..LINKS {
            match self.paths.get(target?)? {
                Node::Folder => return None,
                Node::File(content) => return Some(content),
                Node::Link(next, _) => target = next.as_deref(),
            }
        }
        None
    }

    fn too_large(&self, layer: &str) -> LayerError {
        LayerError::TooLarge {
            layer: layer.to_owned(),
            limit: self.limits.bytes >> 20,
        }
    }

    /// Reads a layer, without those below.
    fn read(&mut self, name: &str, packed: usize, stream: impl Read) -> Result<Layer, LayerError> {
        let left = self.limits.bytes.saturating_sub(self.bytes);
        let by_ratio = (packed as u64).saturating_mul(RATIO).max(RATIO_FREE);
        let read = Rc::new(Cell::new(0));
        let limited = LimitedReader {
            stream,
            left: left.min(by_ratio),
            read: read.clone(),
        };
        let result = self.read_entries(name, limited);
        self.bytes += read.get();
        result.map_err(|error| match error {
            LayerError::Unpack { cause, .. } if is_limit(&cause) => {
                if by_ratio < left {
                    LayerError::Ratio {
                        layer: name.to_owned(),
                    }
                } else {
                    self.too_large(name)
                }
            }
            error => error,
        })
    }

    fn read_entries(&mut self, name: &str, stream: impl Read) -> Result<Layer, LayerError> {
        let layer_name = || name.to_owned();
        let unpack = |cause| LayerError::Unpack {
            layer: name.to_owned(),
            cause,
        };
        let mut layer = Layer::default();
        let mut archive = Archive::new(stream);
        for entry in archive.entries().map_err(unpack)? {
            let mut entry = entry.map_err(unpack)?;
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(LayerError::TooManyEntries {
                    layer: layer_name(),
                    limit: self.limits.entries,
                });
            }
            let written =
                String::from_utf8(entry.path_bytes().into_owned()).map_err(|error| LayerError::Name {
                    layer: layer_name(),
                    path: String::from_utf8_lossy(error.as_bytes()).into_owned(),
                })?;
            let path = (!written.starts_with('/'))
                .then(|| inside("", &written))
                .flatten()
                .ok_or_else(|| LayerError::PathOutside {
                    layer: layer_name(),
                    path: written.clone(),
                })?;
            if !self.is_wanted(&path) {
                continue;
            }
            let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
            if file == OPAQUE {
                layer.opaque.insert(folder.to_owned());
                continue;
            }
            if let Some(removed) = file.strip_prefix(WHITEOUT) {
                layer.removed.insert(join(folder, removed));
                continue;
            }
            let link = |entry: &tar::Entry<'_, _>| {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                String::from_utf8(target).map_err(|_| LayerError::Name {
                    layer: layer_name(),
                    path: path.clone(),
                })
            };
            let node = match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                    let mut content = Vec::new();
                    entry.read_to_end(&mut content).map_err(unpack)?;
                    Node::File(content)
                }
                EntryType::Directory => Node::Folder,
                EntryType::Symlink => {
                    let target = link(&entry)?;
                    // From the root of the image.
                    let start = if target.starts_with('/') { "" } else { folder };
                    Node::Link(inside(start, &target), target)
                }
                EntryType::Link => {
                    let target = link(&entry)?;
                    Node::Link(inside("", &target), target)
                }
                EntryType::XGlobalHeader => continue,
                _ => {
                    return Err(LayerError::SpecialFile {
                        layer: layer_name(),
                        path,
                    });
                }
            };
            layer.nodes.insert(path, node);
        }
        Ok(layer)
    }

    /// Takes away what the layer removes of those below, then puts its own in their place.
    fn put(&mut self, name: &str, layer: Layer) -> Result<(), LayerError> {
        self.paths.retain(|path, _| {
            let mut parents = std::iter::once(path.as_str()).chain(parents(path));
            let is_removed = parents.any(|path| layer.removed.contains(path));
            !is_removed && !self::parents(path).any(|parent| layer.opaque.contains(parent))
        });
        if layer.opaque.contains("") {
            self.paths.clear();
        }
        for (path, node) in layer.nodes {
            for parent in parents(&path) {
                if let Some(Node::File(_) | Node::Link(..)) = self.paths.get(parent) {
                    return Err(LayerError::BelowFile {
                        layer: name.to_owned(),
                        path: path.clone(),
                        parent: parent.to_owned(),
                    });
                }
            }
            if !matches!(node, Node::Folder) {
                // A file in the place of a folder takes away what was in that.
                let below = format!("{path}/");
                let hidden: Vec<_> = self
                    .paths
                    .range(below.clone()..)
                    .take_while(|(path, _)| path.starts_with(&below))
                    .map(|(path, _)| path.clone())
                    .collect();
                for path in hidden {
                    self.paths.remove(&path);
                }
            }
            self.paths.insert(path, node);
        }
        Ok(())
    }

    /// Whether a path, or what it removes, is one of the wanted folders or in one.
    fn is_wanted(&self, path: &str) -> bool {
        let (top, is_alone) = match path.split_once('/') {
            Some((top, _)) => (top, false),
            None => (path, true),
        };
        let top = if is_alone {
            top.strip_prefix(WHITEOUT).unwrap_or(top)
        } else {
            top
        };
        (is_alone && path == OPAQUE) || self.folders.iter().any(|folder| folder == top)
    }
}

/// Whether reading ended at the limit.
fn is_limit(cause: &io::Error) -> bool {
    matches!(cause.get_ref(), Some(cause) if cause.is::<LimitReached>())
}

/// The folders that a path is in, the nearest first.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(end, _)| &path[..end])
}

fn join(folder: &str, file: &str) -> String {
    if folder.is_empty() {
        file.to_owned()
    } else {
        format!("{folder}/{file}")
    }
}

/// `path` as seen from `folder`; `None` when it leads out of the root.
fn inside(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<_> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The window that the header of a frame asks for (RFC 8878 §3.1.1.1).
fn zstd_window(content: &[u8]) -> Option<u64> {
    if !content.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return None;
    }
    let descriptor = *content.get(4)?;
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let byte = *content.get(5)?;
        let (exponent, mantissa) = (u32::from(byte >> 3), u64::from(byte & 7));
        let base = 1_u64 << (10 + exponent);
        return Some(base + base / 8 * mantissa);
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let field = content.get(5 + dictionary..5 + dictionary + length)?;
    let size = field
        .iter()
        .rev()
        .fold(0, |size: u64, byte| size << 8 | u64::from(*byte));
    Some(if length == 2 { size + 256 } else { size })
}

/// A stream that fails, rather than ends, after so many bytes.
struct LimitedReader<R> {
    stream: R,
    left: u64,
    read: Rc<Cell<u64>>,
}

#[derive(Debug, thiserror::Error)]
#[error("there is more than may be unpacked")]
struct LimitReached;

// === impl LimitedReader ===

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return Err(io::Error::other(LimitReached));
        }
        let length = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.stream.read(&mut buffer[..length])?;
        self.left -= read as u64;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
