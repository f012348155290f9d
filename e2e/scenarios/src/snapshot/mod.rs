//! Snapshots of a cluster without values that differ between runs: equal final states give equal snapshots.

mod normal;
mod state;

pub use self::state::Snapshot;
