//! How much of a stranger's catalog is held.

/// How much of a stranger's catalog is held at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogLimits {
    /// The most bytes of one blob. The largest published ones have some 4 MB.
    pub blob: usize,
    /// The most bytes of names, versions and texts that are kept of all blobs.
    pub kept: usize,
    /// How many problems are told apart.
    pub problems: usize,
}

// === impl CatalogLimits ===

impl Default for CatalogLimits {
    fn default() -> Self {
        Self {
            blob: 32 << 20,
            kept: 128 << 20,
            problems: 100,
        }
    }
}
