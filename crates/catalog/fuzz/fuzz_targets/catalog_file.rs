//! Any file, preceded by a line with a version range: the result does not depend on how the stream is split;
//! memory stays within the limits; a package read alone equals the package read among others; a path begins
//! at the installed bundle and ends at a requested one.

#![no_main]

use std::io::{self, Read};

use catalog::{CatalogLimits, CatalogReader, InstalledRelease, ReadCatalog, UpgradeRequest};
use libfuzzer_sys::fuzz_target;
use version_range::{Version, VersionConstraint};

/// Yields a few bytes at a time.
struct Parts<'a>(&'a [u8]);

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(3);
        self.0.read(&mut buffer[..length])
    }
}

const LIMITS: CatalogLimits = CatalogLimits {
    blob: 1 << 20,
    kept: 1 << 16,
    problems: 5,
};

fn read(mut reader: CatalogReader, stream: impl Read) -> Option<ReadCatalog> {
    reader.read("catalog", stream).ok()?;
    Some(reader.finish())
}

fuzz_target!(|input: &[u8]| {
    let end = input
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(input.len());
    let (range, file) = input.split_at(end);
    let range = std::str::from_utf8(range)
        .ok()
        .and_then(|range| VersionConstraint::parse(range).ok());
    let whole = read(CatalogReader::new(LIMITS), file);
    assert_eq!(whole, read(CatalogReader::new(LIMITS), Parts(file)));
    let Some(whole) = whole else { return };
    assert!(whole.problems.len() <= LIMITS.problems + 1);
    for problem in &whole.problems {
        assert!(!problem.to_string().contains('\n'));
    }
    for (name, package) in &whole.catalog.packages {
        let alone = read(CatalogReader::new(LIMITS).only(name), file);
        assert_eq!(
            alone.as_ref().and_then(|read| read.catalog.packages.get(name)),
            Some(package)
        );
        for channel in package.channels.keys() {
            for (installed, bundle) in package.bundles.iter().take(5) {
                let version = Version::parse(&bundle.version);
                let path = package.resolve(&UpgradeRequest {
                    channel: Some(channel),
                    version: range.as_ref(),
                    installed: version.map(|version| InstalledRelease {
                        name: installed,
                        version,
                    }),
                });
                let Ok(path) = path else { continue };
                let last = path.edges.last().map_or(&bundle.version, |edge| &edge.version);
                let last = Version::parse(last);
                assert!(last.is_some_and(|last| range.as_ref().is_none_or(|range| range.contains(&last))));
                assert!(path.edges.iter().all(|edge| edge.bundle != *installed));
            }
        }
    }
});
