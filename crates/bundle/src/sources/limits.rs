//! How much of a stranger's bundle is read.

/// How many bytes a bundle may hold, unpacked.
pub const UNPACKED_BYTES: u64 = 64 << 20;

/// How many files and folders a bundle may hold.
pub const FILES: usize = 10_000;
