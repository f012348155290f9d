//! Sources of bundles: each yields the same map of path to bytes.
//!
//! Sources block; asynchronous callers use `spawn_blocking`.

mod any;
pub mod archive;
mod collector;
pub mod config_maps;
pub mod directory;
mod error;
mod limits;
pub mod pack;
mod reader;
mod stored_bundle;
#[cfg(test)]
mod tests;

pub use any::{PathContents, load_any};
pub use error::SourceError;
pub use limits::{FILES, UNPACKED_BYTES};
pub use reader::load;
pub use stored_bundle::{MOST_CONFIG_MAPS, StoredBundle};
