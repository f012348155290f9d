//! An archive of any content is rejected or yields the files of a bundle. Files that were read survive
//! storage in an archive and in ConfigMaps, whose parts form the same archive.

#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use tar::{Builder, EntryType, Header};
use windlass_bundle::{
    Files,
    sources::{FILES, archive, config_maps, pack::pack},
};

#[allow(dead_code, reason = "other targets use more of it")]
mod checks;

/// An archive and its encoding.
#[derive(arbitrary::Arbitrary, Debug)]
struct Input<'a> {
    content: Content<'a>,
    part: u16,
    /// One byte is changed.
    damage: Option<(u16, u8)>,
}

#[derive(arbitrary::Arbitrary, Debug)]
enum Content<'a> {
    Bytes(&'a [u8]),
    Entries(Vec<ArchiveEntry>),
    Packed(Vec<(String, Vec<u8>)>),
}

#[derive(arbitrary::Arbitrary, Debug)]
struct ArchiveEntry {
    folder: Folder,
    name: EntryName,
    content: EntryContent,
}

/// The start of a path.
#[derive(arbitrary::Arbitrary, Debug)]
enum Folder {
    Root,
    Absolute,
    Manifests,
    Metadata,
    Top,
    TopManifests,
    Tests,
    Outside,
}

/// The end of a path: mostly one of a few names, so that entries collide.
#[derive(arbitrary::Arbitrary, Debug)]
enum EntryName {
    First,
    Second,
    Folder,
    Manifests,
    Bytes(Vec<u8>),
}

#[derive(arbitrary::Arbitrary, Debug)]
enum EntryContent {
    File(u16),
    Folder,
    Symlink(Folder, EntryName),
    HardLink(Folder, EntryName),
    Kind(u8, u16),
    LongName(Vec<u8>),
}

impl Folder {
    fn path(&self, name: &EntryName) -> Vec<u8> {
        let folder: &[u8] = match self {
            Self::Root => b"",
            Self::Absolute => b"/",
            Self::Manifests => b"manifests/",
            Self::Metadata => b"./metadata/",
            Self::Top => b"top/",
            Self::TopManifests => b"top/manifests/",
            Self::Tests => b"tests/",
            Self::Outside => b"manifests/../../",
        };
        [folder, name.bytes()].concat()
    }
}

impl EntryName {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::First => b"first.yaml",
            Self::Second => b"second.yaml",
            Self::Folder => b"folder/../first.yaml",
            Self::Manifests => b"manifests",
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl ArchiveEntry {
    fn append(&self, archive: &mut Builder<Vec<u8>>) {
        let mut header = Header::new_gnu();
        let mut content = Vec::new();
        let (kind, target) = match &self.content {
            EntryContent::File(size) => {
                content = vec![b'a'; usize::from(*size)];
                (EntryType::Regular, None)
            }
            EntryContent::Folder => (EntryType::Directory, None),
            EntryContent::Symlink(folder, name) => (EntryType::Symlink, Some(folder.path(name))),
            EntryContent::HardLink(folder, name) => (EntryType::Link, Some(folder.path(name))),
            EntryContent::Kind(kind, size) => {
                content = vec![b'a'; usize::from(*size)];
                (EntryType::new(*kind), None)
            }
            EntryContent::LongName(name) => {
                content.clone_from(name);
                (EntryType::GNULongName, None)
            }
        };
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        let gnu = header.as_gnu_mut().expect("the header is GNU");
        put(&mut gnu.name, &self.folder.path(&self.name));
        put(&mut gnu.linkname, &target.unwrap_or_default());
        header.set_cksum();
        archive
            .append(&header, content.as_slice())
            .expect("writes to a vector succeed");
    }
}

fn put(field: &mut [u8], bytes: &[u8]) {
    let length = bytes.len().min(field.len());
    field[..length].copy_from_slice(&bytes[..length]);
}

impl Content<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.to_vec(),
            Self::Entries(entries) => {
                let mut archive = Builder::new(Vec::new());
                entries.iter().for_each(|entry| entry.append(&mut archive));
                archive.into_inner().expect("writes to a vector succeed")
            }
            Self::Packed(files) => {
                let files: Files = files
                    .iter()
                    .map(|(name, content)| (format!("manifests/{name}"), content.clone()))
                    .collect();
                pack(&files).unwrap_or_default()
            }
        }
    }
}

fn check_files(files: &Files) {
    assert!(!files.is_empty() && files.len() <= FILES);
    for path in files.keys() {
        let mut segments = path.split('/');
        assert!(
            segments
                .next()
                .is_some_and(|folder| ["manifests", "metadata"].contains(&folder)),
            "{path:?}"
        );
        assert!(segments.clone().next().is_some(), "{path:?} is a folder");
        assert!(
            segments.all(|segment| !["", ".", ".."].contains(&segment)),
            "{path:?}"
        );
    }
    checks::check_stored(files);
}

fuzz_target!(|input: Input<'_>| {
    let mut bytes = input.content.bytes();
    if let Some((place, byte)) = input.damage
        && !bytes.is_empty()
    {
        let place = usize::from(place) % bytes.len();
        bytes[place] ^= byte;
    }
    let parts: Vec<_> = config_maps::divide(&bytes, usize::from(input.part) + 1).collect();
    let assembled = config_maps::assemble(&parts).expect("the parts are complete");
    assert_eq!(assembled, bytes);
    match archive::load(bytes.as_slice(), "-") {
        Ok(files) => check_files(&files),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let _ = error.file();
        }
    }
});
