//! Applying objects: foreign objects are not touched, up-to-date objects are not written, and callers of
//! webhooks are complete from their creation.
//!
//! Every function compares the live object with the desired one, so that a crash after any write is safe.

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
pub use retention::{Retention, RetentionFuture};
