//! Limits for untrusted bundles.

/// The maximum size of a bundle in bytes, unpacked.
pub const UNPACKED_BYTES: u64 = 64 << 20;

/// The maximum number of files and folders in a bundle.
pub const FILES: usize = 10_000;
