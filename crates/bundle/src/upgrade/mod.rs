//! Upgrade rules: which bundle may replace an installed one.

mod release;

pub use release::{Predecessors, Release, UpgradeRefusal};
pub use version_range::Version;
