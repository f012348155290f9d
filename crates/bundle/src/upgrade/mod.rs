//! Whether one bundle may follow another.

mod range;
mod release;
mod version;

pub use release::{Predecessors, Release, UpgradeRefusal};
pub use version::Version;
