//! Small loops: read what is there, ask `domain` for a plan, hand its steps to `cluster`, report status.

pub mod bundle_deployment;
mod context;
pub mod worker;

pub use context::Context;
