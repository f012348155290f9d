//! Whether one bundle may follow another.

mod range;
mod release;
mod version;

pub(crate) use range::VersionRange;
pub use release::{Predecessors, Release, UpgradeRefusal};
pub use version::Version;
