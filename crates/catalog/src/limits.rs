//! Limits for untrusted catalogs.

/// Limits for untrusted catalogs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogLimits {
    /// The maximum size of a blob in bytes. The largest published ones have some 4 MB.
    pub blob: usize,
    /// The maximum number of bytes of names, versions and texts that are kept of all blobs.
    pub kept: usize,
    /// The maximum number of reported problems.
    pub problems: usize,
}

impl Default for CatalogLimits {
    fn default() -> Self {
        Self {
            blob: 32 << 20,
            kept: 128 << 20,
            problems: 100,
        }
    }
}
