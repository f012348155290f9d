//! Applying objects: nothing foreign is touched, nothing is written that is there already, and what sends API traffic
//! to a webhook is complete from its first moment.
//!
//! Each function looks at what is there and does what is missing, so that any write may be the last one before a
//! crash.

mod applicant;
mod applier;
mod body;
mod difference;
mod memory;
mod repairs;
pub(crate) mod replicas;
mod retaining;
pub mod retention;
mod swing;
#[cfg(test)]
mod tests;
mod webhooks;

pub use applicant::Applicant;
pub use applier::{Applier, ApplyError, Outcome};
pub use body::body_of;
pub use difference::{body_hash, covers};
pub use repairs::RepairContest;
pub use retention::{Retaining, Retention};
