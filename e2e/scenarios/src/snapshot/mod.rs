//! What is in a cluster, without what differs from one run to the next: two runs that end alike are equal.

mod normal;
mod state;

pub use self::state::Snapshot;
