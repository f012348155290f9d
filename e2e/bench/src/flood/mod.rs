//! Tenants who mean no good: what a flood of theirs costs the operator, and others.
//!
//! ```text
//! guard, sample, probes -> repairs without a flood -> flood beside requests, CA rotations and repairs -> tables
//! ```

mod arguments;
mod black_hole;
mod bodies;
mod calls;
mod guard;
mod idle_connections;
mod kinds;
mod measure;
mod object_flood;
mod outcome;
mod repair_probe;
mod tenant;

pub(crate) use arguments::FloodArguments;

pub(super) use measure::measure;
