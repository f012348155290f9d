//! Applying objects: nothing foreign is touched, nothing is written that is there already, and what sends API traffic
//! to a webhook is complete from its first moment.
//!
//! Each function looks at what is there and does what is missing, so that any write may be the last one before a
//! crash.

mod applier;
mod body;
mod difference;
mod field_owner;
mod memory;
mod repairs;
pub(crate) mod replicas;
mod retained_write;
pub mod retention;
mod switch_caller;
#[cfg(test)]
mod tests;
mod webhooks;

pub use applier::{Applier, ApplyError, Outcome};
pub use body::apply_body;
pub use difference::{body_hash, covers};
pub use field_owner::FieldOwner;
pub use repairs::RepairContest;
pub use retention::{Retaining, Retention};
