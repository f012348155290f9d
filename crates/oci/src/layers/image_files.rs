//! Extracts the files of an image from its layers.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    io::Read,
    rc::Rc,
};

use tar::{Archive, Entry, EntryType};

use super::{
    LayerError,
    compression::Compression,
    limited_reader::{LimitedReader, is_limit},
    paths::{inside, join, parents},
};

/// Limits for untrusted images.
#[derive(Clone, Copy, Debug)]
pub struct LayerLimits {
    /// The maximum size of all layers in bytes, unpacked.
    pub bytes: u64,
    /// The maximum number of files, folders and links in all layers.
    pub entries: usize,
}

/// The files of an image after all layers are applied.
///
/// Only files in the wanted folders are kept; others count towards the limits.
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
    /// The target of a link, from the root; `None` if it is outside of the image.
    Link(Option<String>, String),
}

/// The changes of a layer to the layers below.
#[derive(Default)]
struct Layer {
    nodes: BTreeMap<String, Node>,
    removed: BTreeSet<String>,
    opaque: BTreeSet<String>,
}

/// The maximum ratio of unpacked to packed size, for layers above 4 MiB.
pub const RATIO: u64 = 200;

/// The ratio does not apply to this number of bytes.
pub(super) const RATIO_FREE: u64 = 4 << 20;

/// The maximum number of consecutive links.
const LINKS: usize = 40;

pub(super) const WHITEOUT: &str = ".wh.";
pub(super) const OPAQUE: &str = ".wh..wh..opq";

impl ImageFiles {
    /// Creates an image without files, that will keep files below `folders`.
    pub fn new(folders: &[&str], limits: LayerLimits) -> Self {
        Self {
            limits,
            folders: folders.iter().map(|&folder| folder.to_owned()).collect(),
            bytes: 0,
            entries: 0,
            paths: BTreeMap::new(),
        }
    }

    /// Applies the next layer.
    ///
    /// # Errors
    ///
    /// The first entry that is not allowed.
    pub fn add(&mut self, name: &str, media_type: &str, content: &[u8]) -> Result<(), LayerError> {
        let compression = Compression::from_media_type(media_type).ok_or_else(|| LayerError::MediaType {
            layer: name.to_owned(),
            media_type: media_type.to_owned(),
        })?;
        let layer = self.read(name, content.len(), compression.unpack(content))?;
        self.insert(name, layer)
    }

    /// Returns the files, with links replaced by their targets.
    ///
    /// # Errors
    ///
    /// If the target of a link was not kept, or a wanted folder is a file.
    pub fn into_files(self) -> Result<BTreeMap<String, Vec<u8>>, LayerError> {
        let mut files = BTreeMap::new();
        // The content of a link's target counts again.
        let mut bytes = 0;
        for (path, node) in &self.paths {
            let content = match node {
                Node::Folder => continue,
                Node::File(content) => content,
                Node::Link(target, written) => {
                    self.resolve_link(target.as_deref())
                        .ok_or_else(|| LayerError::Link {
                            path: path.clone(),
                            target: written.clone(),
                            folders: self.folders.join(" and "),
                        })?
                }
            };
            if self.folders.contains(path) {
                return Err(LayerError::NotFolder { path: path.clone() });
            }
            bytes += content.len() as u64;
            if bytes > self.limits.bytes {
                return Err(self.too_large(path));
            }
            files.insert(path.clone(), content.clone());
        }
        Ok(files)
    }

    fn resolve_link<'a>(&'a self, mut target: Option<&'a str>) -> Option<&'a Vec<u8>> {
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

    /// Reads a layer without applying it.
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
            let path = entry_path(name, &entry)?;
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
                    // Relative to the root of the image.
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

    /// Applies the removals of a layer, then its entries.
    fn insert(&mut self, name: &str, layer: Layer) -> Result<(), LayerError> {
        self.paths.retain(|path, _| {
            let mut upwards = std::iter::once(path.as_str()).chain(parents(path));
            let is_removed = upwards.any(|path| layer.removed.contains(path));
            !is_removed && !parents(path).any(|parent| layer.opaque.contains(parent))
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
                // A file that replaces a folder removes the contents of the folder.
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

    /// Reports whether a path, or the target of a whiteout, is a wanted folder or below one.
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

/// The path of an archive entry, from the root of the image.
pub(super) fn entry_path<R: Read>(layer: &str, entry: &Entry<'_, R>) -> Result<String, LayerError> {
    let written = String::from_utf8(entry.path_bytes().into_owned()).map_err(|error| LayerError::Name {
        layer: layer.to_owned(),
        path: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })?;
    let is_absolute = written.starts_with('/');
    let path = inside("", &written).filter(|_| !is_absolute);
    path.ok_or_else(|| LayerError::PathOutside {
        layer: layer.to_owned(),
        path: written,
    })
}
