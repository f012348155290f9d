//! Streams the files of an image without keeping them.

use std::{
    cell::Cell,
    collections::BTreeSet,
    io::{self, Read},
    rc::Rc,
};

use tar::{Archive, EntryType};

use super::{
    LayerError, LayerLimits, RATIO,
    compression::Compression,
    image_files::{OPAQUE, RATIO_FREE, WHITEOUT, entry_path},
    limited_reader::{LimitedReader, is_limit},
    paths::{join, parents},
};

/// Streams the files in one folder of an image, keeping only their paths.
///
/// Layers are read from highest to lowest, so that the paths they hide in lower layers are known. Links are
/// refused, since their targets may have passed already.
pub struct ImageScan {
    folder: String,
    limits: LayerLimits,
    bytes: u64,
    entries: usize,
    hidden: Hidden,
}

/// The paths that higher layers hide.
#[derive(Default)]
struct Hidden {
    /// Files and removals of the higher layers.
    paths: BTreeSet<String>,
    /// Opaque folders of the higher layers, which hide everything below.
    opaque: BTreeSet<String>,
    /// Folders of the higher layers, which hide files of the same path.
    folders: BTreeSet<String>,
}

/// A stream with an allowance that its owner extends: tar headers are read into memory.
struct AllowanceReader<R> {
    stream: R,
    allowed: Rc<Cell<u64>>,
}

/// The maximum number of header bytes between two contents: enough for names of a few KiB.
const HEADERS: u64 = 1 << 20;

impl ImageScan {
    /// Scans below `folder`, which has no slash at its start or end.
    pub fn new(folder: &str, limits: LayerLimits) -> Self {
        Self {
            folder: folder.to_owned(),
            limits,
            bytes: 0,
            entries: 0,
            hidden: Hidden::default(),
        }
    }

    /// Reports whether everything in lower layers is hidden.
    pub fn is_complete(&self) -> bool {
        self.hidden.hides(&self.folder) || self.hidden.opaque.contains(&self.folder)
    }

    /// Reads the next lower layer, which has `size` bytes compressed by its media type. Calls `each` with
    /// every visible file and its path in the folder.
    ///
    /// # Errors
    ///
    /// The first entry that is not allowed, or an error of `each`.
    pub fn read(
        &mut self,
        name: &str,
        media_type: &str,
        size: u64,
        content: impl Read,
        each: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
    ) -> Result<(), LayerError> {
        let compression = Compression::from_media_type(media_type).ok_or_else(|| LayerError::MediaType {
            layer: name.to_owned(),
            media_type: media_type.to_owned(),
        })?;
        let left = self.limits.bytes.saturating_sub(self.bytes);
        let by_ratio = size.saturating_mul(RATIO).max(RATIO_FREE);
        let read = Rc::new(Cell::new(0));
        let limited = LimitedReader {
            stream: compression.unpack(content),
            left: left.min(by_ratio),
            read: read.clone(),
        };
        let result = self.read_entries(name, limited, each);
        self.bytes += read.get();
        let hidden = result.map_err(|error| match error {
            LayerError::Unpack { cause, .. } if is_limit(&cause) => match by_ratio < left {
                true => LayerError::Ratio {
                    layer: name.to_owned(),
                },
                false => LayerError::TooLarge {
                    layer: name.to_owned(),
                    limit: self.limits.bytes >> 20,
                },
            },
            error => error,
        })?;
        self.hidden.paths.extend(hidden.paths);
        self.hidden.opaque.extend(hidden.opaque);
        self.hidden.folders.extend(hidden.folders);
        Ok(())
    }

    fn read_entries(
        &mut self,
        name: &str,
        stream: impl Read,
        each: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
    ) -> Result<Hidden, LayerError> {
        let unpack = |cause| LayerError::Unpack {
            layer: name.to_owned(),
            cause,
        };
        let mut hidden = Hidden::default();
        let allowed = Rc::new(Cell::new(HEADERS));
        let mut archive = Archive::new(AllowanceReader {
            stream,
            allowed: allowed.clone(),
        });
        for entry in archive.entries().map_err(unpack)? {
            let mut entry = entry.map_err(unpack)?;
            allowed.set(entry.size().saturating_add(HEADERS));
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(LayerError::TooManyEntries {
                    layer: name.to_owned(),
                    limit: self.limits.entries,
                });
            }
            let path = entry_path(name, &entry)?;
            let (parent, file) = path.rsplit_once('/').unwrap_or(("", &path));
            if file == OPAQUE {
                if self.concerns(parent) {
                    hidden.opaque.insert(parent.to_owned());
                }
                continue;
            }
            if let Some(removed) = file.strip_prefix(WHITEOUT) {
                let removed = join(parent, removed);
                if self.concerns(&removed) {
                    hidden.paths.insert(removed);
                }
                continue;
            }
            if !self.concerns(&path) || self.hidden.hides(&path) {
                continue;
            }
            hidden.folders.extend(parents(&path).map(str::to_owned));
            match entry.header().entry_type() {
                EntryType::XGlobalHeader => {}
                EntryType::Directory => {
                    hidden.folders.insert(path);
                }
                _ if self.hidden.folders.contains(&path) => {}
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                    if let Some(inside) = self.inside(&path) {
                        each(inside, &mut entry).map_err(unpack)?;
                    }
                    hidden.paths.insert(path);
                }
                EntryType::Symlink | EntryType::Link => {
                    let target = entry.link_name_bytes().unwrap_or_default();
                    return Err(LayerError::Link {
                        path,
                        target: String::from_utf8_lossy(&target).into_owned(),
                        folders: self.folder.clone(),
                    });
                }
                _ => {
                    return Err(LayerError::SpecialFile {
                        layer: name.to_owned(),
                        path,
                    });
                }
            }
        }
        Ok(hidden)
    }

    /// Reports whether a path is the folder, below the folder, or one of its parents.
    fn concerns(&self, path: &str) -> bool {
        path == self.folder
            || self.inside(path).is_some()
            || parents(&self.folder).any(|parent| parent == path)
            || path.is_empty()
    }

    /// Returns the path relative to the folder; `None` if the path is not below the folder.
    fn inside<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.folder.as_str() {
            "" => Some(path),
            folder => path.strip_prefix(folder)?.strip_prefix('/'),
        }
    }
}

impl Hidden {
    fn hides(&self, path: &str) -> bool {
        self.paths.contains(path)
            || parents(path).any(|parent| self.paths.contains(parent) || self.opaque.contains(parent))
            || (self.opaque.contains("") && !path.is_empty())
    }
}

impl<R: Read> Read for AllowanceReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowed = self.allowed.get();
        if allowed == 0 && !buffer.is_empty() {
            return Err(io::Error::other("the headers of an entry have more than 1 MiB"));
        }
        let length = buffer.len().min(usize::try_from(allowed).unwrap_or(usize::MAX));
        let read = self.stream.read(&mut buffer[..length])?;
        self.allowed.set(allowed - read as u64);
        Ok(read)
    }
}
