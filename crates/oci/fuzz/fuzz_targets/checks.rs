//! Invariants for the files of every image.

use std::collections::BTreeMap;

use oci::LayerLimits;

/// The wanted folders.
pub const FOLDERS: [&str; 2] = ["manifests", "metadata"];

/// Small enough for a fuzzer to exceed.
pub const LIMITS: LayerLimits = LayerLimits {
    bytes: 8192,
    entries: 64,
};

/// All files are in the folders, and their sum is within the limits.
pub fn check(files: &BTreeMap<String, Vec<u8>>) {
    let bytes: usize = files.values().map(Vec::len).sum();
    assert!(bytes as u64 <= LIMITS.bytes, "{bytes} bytes");
    assert!(files.len() <= LIMITS.entries, "{} files", files.len());
    for path in files.keys() {
        let mut segments = path.split('/');
        assert!(
            segments.next().is_some_and(|folder| FOLDERS.contains(&folder)),
            "{path:?}"
        );
        assert!(segments.clone().next().is_some(), "{path:?} is a folder");
        assert!(
            segments.all(|segment| !["", ".", ".."].contains(&segment)),
            "{path:?}"
        );
        let below = format!("{path}/");
        assert!(
            !files.keys().any(|other| other.starts_with(&below)),
            "{path:?} is also a folder"
        );
    }
}
