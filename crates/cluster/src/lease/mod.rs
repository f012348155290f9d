//! Leader election: of several replicas of the operator one works, and the others are ready to.
//!
//! ```text
//! Lease as read, who we are, now -> Candidate -> take | renew | wait -> Elector -> Claim -> Leadership -> every write
//!                                    (pure)                            (shell)              (checked at use)
//! ```
//!
//! The Lease of `coordination.k8s.io/v1` is used as client-go uses it (`tools/leaderelection`), so that what watches
//! other operators watches this one. Three things are stricter here:
//!
//! - **Every write asks.** [`fenced`] lets a write pass only while the [`LeaderTerm`] is current, at each try of it. A
//!   process that was stopped and goes on later knows of no loss yet, and still sends nothing.
//! - **A claim counts from before its renewal was sent**, and ends at the renewal deadline, which is earlier than any
//!   other replica may take the Lease. What lies between covers clocks of different rates, and writes that are under
//!   way.
//! - **A claim that has ended is never revived.** The process ends, and is started again with nothing remembered.
//!
//! What no fence can hold back is a write that has passed it and arrives late. There, two leaders must do no harm: each
//! write of a Secret replaces the resourceVersion that was read, and each write of a `caBundle` tests what was there.

mod candidate;
mod elector;
mod fence;
mod leadership;
mod moment;
mod record;
#[cfg(test)]
mod tests;

pub use candidate::{Candidate, Decision, LeaderElectionConfig};
pub use elector::{AttemptError, Elector, LEASE, LeadershipLost};
pub use fence::fenced;
pub use leadership::{LeaderSince, LeaderTerm, Leadership, NotLeading};
pub use moment::Moment;
pub use record::{LeaderElectionRecord, ReadLeaseError};
