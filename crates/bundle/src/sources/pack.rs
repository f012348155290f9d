//! Packs a bundle into an archive that [`super::archive`] reads.

use std::io;

use flate2::{Compression, GzBuilder};
use tar::{Builder, Header};

use crate::parse::Files;

/// The value for an unknown operating system in a gzip header (RFC 1952 §2.3.1).
const UNKNOWN_SYSTEM: u8 = 255;

/// Packs a bundle as `.tar.gz`. The same files yield the same bytes: times, owners and modes are not stored.
///
/// # Errors
///
/// If an archive cannot contain a name.
pub fn pack(files: &Files) -> io::Result<Vec<u8>> {
    let encoder = GzBuilder::new()
        .mtime(0)
        .operating_system(UNKNOWN_SYSTEM)
        .write(Vec::new(), Compression::best());
    let mut archive = Builder::new(encoder);
    for (name, content) in files {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, name, content.as_slice())?;
    }
    archive.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};

    use super::*;
    use crate::sources::{archive, config_maps};

    proptest! {
        #[test]
        fn packed_and_split_bundles_read_back(
            files in collection::btree_map(
                "(manifests|metadata)/[a-z][a-zA-Z0-9 _.-]{0,80}(/x{1,120})?[a-z]",
                collection::vec(any::<u8>(), 0..2000),
                1..8,
            ),
            size in 1..3000_usize,
        ) {
            let packed = pack(&files).unwrap();
            prop_assert_eq!(&packed, &pack(&files).unwrap());
            let maps: Vec<_> = config_maps::divide(&packed, size).collect();
            prop_assert_eq!(maps.len(), packed.len().div_ceil(size));
            let assembled = config_maps::assemble(&maps).unwrap();
            prop_assert_eq!(archive::load(assembled.as_slice(), "-").unwrap(), files);
        }
    }
}
