//! Layers with any entries in any order yield only files in the wanted folders, and within the limits.

#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use oci::ImageFiles;
use tar::{Builder, EntryType, Header};

mod checks;

#[derive(arbitrary::Arbitrary, Debug)]
struct LayerEntry {
    folder: EntryFolder,
    name: EntryName,
    content: EntryContent,
}

/// The start of a path.
#[derive(arbitrary::Arbitrary, Debug)]
enum EntryFolder {
    Root,
    Absolute,
    Manifests,
    Metadata,
    Deep,
    Other,
    Outside,
}

/// The end of a path: mostly one of a few names, so that entries collide.
#[derive(arbitrary::Arbitrary, Debug)]
enum EntryName {
    First,
    Second,
    Below,
    Manifests,
    Whiteout,
    WhiteoutOfFolder,
    Opaque,
    Bytes(Vec<u8>),
}

#[derive(arbitrary::Arbitrary, Debug)]
enum EntryContent {
    File(u16),
    Folder,
    Symlink(EntryFolder, EntryName),
    HardLink(EntryFolder, EntryName),
    Device,
    Kind(u8, u16),
}

impl EntryFolder {
    fn path(&self, name: &EntryName) -> Vec<u8> {
        let folder: &[u8] = match self {
            Self::Root => b"",
            Self::Absolute => b"/",
            Self::Manifests => b"manifests/",
            Self::Metadata => b"./metadata/",
            Self::Deep => b"manifests/first/",
            Self::Other => b"other/",
            Self::Outside => b"manifests/../../",
        };
        [folder, name.bytes()].concat()
    }
}

impl EntryName {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::First => b"first",
            Self::Second => b"second",
            Self::Below => b"first/below",
            Self::Manifests => b"manifests",
            Self::Whiteout => b".wh.first",
            Self::WhiteoutOfFolder => b".wh.manifests",
            Self::Opaque => b".wh..wh..opq",
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl LayerEntry {
    fn append(&self, archive: &mut Builder<Vec<u8>>) {
        let mut header = Header::new_gnu();
        let (kind, size, target) = match &self.content {
            EntryContent::File(size) => (EntryType::Regular, *size, None),
            EntryContent::Folder => (EntryType::Directory, 0, None),
            EntryContent::Symlink(folder, name) => (EntryType::Symlink, 0, Some(folder.path(name))),
            EntryContent::HardLink(folder, name) => (EntryType::Link, 0, Some(folder.path(name))),
            EntryContent::Device => (EntryType::Char, 0, None),
            EntryContent::Kind(kind, size) => (EntryType::new(*kind), *size, None),
        };
        header.set_entry_type(kind);
        header.set_size(size.into());
        let gnu = header.as_gnu_mut().expect("the header is GNU");
        put(&mut gnu.name, &self.folder.path(&self.name));
        put(&mut gnu.linkname, &target.unwrap_or_default());
        header.set_cksum();
        let content = vec![b'a'; size.into()];
        archive
            .append(&header, content.as_slice())
            .expect("writes to a vector succeed");
    }
}

fn put(field: &mut [u8], bytes: &[u8]) {
    let length = bytes.len().min(field.len());
    field[..length].copy_from_slice(&bytes[..length]);
}

fuzz_target!(|layers: Vec<Vec<LayerEntry>>| {
    let mut files = ImageFiles::new(&checks::FOLDERS, checks::LIMITS);
    for (number, layer) in layers.iter().enumerate() {
        let mut archive = Builder::new(Vec::new());
        layer.iter().for_each(|entry| entry.append(&mut archive));
        let content = archive.into_inner().expect("writes to a vector succeed");
        let name = format!("layer {number}");
        if files
            .add(&name, "application/vnd.oci.image.layer.v1.tar", &content)
            .is_err()
        {
            return;
        }
    }
    if let Ok(files) = files.into_files() {
        checks::check(&files);
    }
});
