//! Whether one bundle may follow another.

mod release;

pub use release::{Predecessors, Release, UpgradeRefusal};
pub use version_range::Version;
