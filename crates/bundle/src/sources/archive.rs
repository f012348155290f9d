//! A bundle in a tar archive, with or without gzip.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::collector::FileCollector;
use super::error::{PARTS, SourceError, is_part_of_bundle, relative};
use super::limits::{FILES, UNPACKED_BYTES};
use crate::parse::Files;

/// The block size of tar: entries have a header block and are padded to full blocks.
const BLOCK: u64 = 512;

/// The maximum number of bytes that are read: the content, two blocks of overhead for each entry, and the
/// same again for long names.
const STREAM_BYTES: u64 = UNPACKED_BYTES + 4 * BLOCK * FILES as u64;

/// Reads `manifests/` and `metadata/` of the bundle in an archive; they may be in a single top folder.
///
/// `name` names the archive in errors. Links are followed within the archive.
///
/// # Errors
///
/// The first entry that cannot be read or is not allowed in a bundle.
pub fn load(mut stream: impl Read, name: &str) -> Result<Files, SourceError> {
    let mut start = Vec::new();
    stream
        .by_ref()
        .take(BLOCK)
        .read_to_end(&mut start)
        .map_err(|cause| SourceError::Read {
            file: name.to_owned(),
            cause,
        })?;
    let (gzip, tar) = (is_gzip(&start), is_tar(&start));
    let stream = Cursor::new(start).chain(stream);
    if gzip {
        return unpack(MultiGzDecoder::new(stream), name);
    }
    if tar {
        return unpack(stream, name);
    }
    Err(SourceError::Unsupported {
        file: name.to_owned(),
    })
}

/// Reports whether bytes that begin with `start` are an archive for [`load`]; one block is enough.
pub fn is_archive(start: &[u8]) -> bool {
    is_gzip(start) || is_tar(start)
}

fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

fn is_tar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar")
}

fn unpack(stream: impl Read, name: &str) -> Result<Files, SourceError> {
    let read = |file: &str, cause: io::Error| match cause.downcast::<EndOfLimit>() {
        Ok(EndOfLimit) => SourceError::TooLarge {
            file: file.to_owned(),
        },
        Err(cause) => SourceError::Read {
            file: file.to_owned(),
            cause,
        },
    };
    let mut archive = Archive::new(Limited {
        stream,
        left: STREAM_BYTES,
    });
    let mut collection = FileCollector::new();
    let mut links = BTreeMap::new();
    for entry in archive.entries().map_err(|cause| read(name, cause))? {
        let entry = entry.map_err(|cause| read(name, cause))?;
        let path = entry.path().map_err(|cause| read(name, cause))?.into_owned();
        let file = relative(&path)?.display().to_string();
        collection.count(&file)?;
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let size = entry.size();
                collection.add(&file, size, entry)?;
            }
            EntryType::Symlink => {
                let target = link_target(&entry, &file)?;
                let folder = path.parent().unwrap_or(Path::new(""));
                links.insert(
                    file.clone(),
                    join(folder, &target).ok_or(SourceError::LinkOutside { file, target })?,
                );
            }
            EntryType::Link => {
                let target = link_target(&entry, &file)?;
                links.insert(
                    file.clone(),
                    join(Path::new(""), &target).ok_or(SourceError::LinkOutside { file, target })?,
                );
            }
            EntryType::Directory | EntryType::XGlobalHeader => {}
            _ => return Err(SourceError::SpecialFile { file }),
        }
    }
    resolve_links(&links, &mut collection)?;
    let mut files = without_top_folder(collection.into_files());
    files.retain(|file, _| is_part_of_bundle(file));
    if files.is_empty() {
        return Err(SourceError::NotABundle {
            file: name.to_owned(),
        });
    }
    Ok(files)
}

fn link_target(entry: &tar::Entry<'_, impl Read>, file: &str) -> Result<String, SourceError> {
    let target = entry.link_name().map_err(|cause| SourceError::Read {
        file: file.to_owned(),
        cause,
    })?;
    let target = target.unwrap_or_default();
    target
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| SourceError::Name {
            file: file.to_owned(),
        })
}

/// Resolves `target` relative to `folder`; `None` if it leaves the archive.
fn join(folder: &Path, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder
        .to_str()?
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Adds the target of each link as a file with the link's name.
fn resolve_links(
    links: &BTreeMap<String, String>,
    collection: &mut FileCollector,
) -> Result<(), SourceError> {
    let ends = final_targets(links);
    for (file, target) in links {
        let end = ends.get(file.as_str()).copied().flatten();
        let Some(content) = end.and_then(|end| collection.content(end)).map(<[u8]>::to_vec) else {
            return Err(SourceError::LinkOutside {
                file: file.clone(),
                target: target.clone(),
            });
        };
        collection.add(file, content.len() as u64, content.as_slice())?;
    }
    Ok(())
}

/// Returns the final target of each link; `None` for links in a cycle. Each link is followed once.
fn final_targets(links: &BTreeMap<String, String>) -> BTreeMap<&str, Option<&str>> {
    let mut ends: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for file in links.keys() {
        let mut way = Vec::new();
        let mut place = file.as_str();
        let end = loop {
            if let Some(known) = ends.get(place) {
                break *known;
            }
            let Some(target) = links.get(place) else {
                break Some(place);
            };
            way.push(place);
            // A link that is seen again is in a cycle.
            ends.insert(place, None);
            place = target;
        };
        ends.extend(way.into_iter().map(|place| (place, end)));
    }
    ends
}

/// Returns the files below the only top folder, unless that folder is itself part of the bundle.
fn without_top_folder(files: Files) -> Files {
    let top = |file: &str| file.split_once('/').map(|(top, _)| top.to_owned());
    let Some(first) = files.keys().next().and_then(|file| top(file)) else {
        return files;
    };
    let single = files.keys().all(|file| top(file).as_deref() == Some(&first));
    let prefix = format!("{first}/");
    if !single || PARTS.contains(&first.as_str()) {
        return files;
    }
    files
        .into_iter()
        .filter_map(|(file, content)| Some((file.strip_prefix(&prefix)?.to_owned(), content)))
        .collect()
}

/// A stream that fails at its limit instead of ending.
struct Limited<R> {
    stream: R,
    left: u64,
}

/// The stream exceeds its limit.
#[derive(Debug, thiserror::Error)]
#[error("the archive is too large")]
struct EndOfLimit;

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return Err(io::Error::other(EndOfLimit));
        }
        let length = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.stream.read(&mut buffer[..length])?;
        self.left -= read as u64;
        Ok(read)
    }
}
