//! `e2e/soak`: what rotations cost, changes of CAs, repairs, bad nights, floods, rewriting stored objects, a large cluster, and idleness, in
//! figures.
//!
//! ```text
//! connections -> nothing happens -> renewals -> CA rotations -> the rest of the requests -> tables
//! ```

mod admission;
mod arguments;
mod bare_client;
mod bed;
mod blind;
mod changes;
mod crowd;
mod figures;
mod flood;
mod idle;
mod measurement;
mod migration;
mod nights;
mod objects;
mod preloaded;
mod repairs;
mod replicas;
mod rotations;
mod run;
mod started;
mod stranger;
mod table;
mod target_crowd;
mod targets;

pub use arguments::Arguments;
pub use bed::{Delay, ParseDelayError};
pub use measurement::Measurement;
pub use run::run;
