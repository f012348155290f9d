//! Leader election: one of several replicas of the operator works, and the others are on standby.
//!
//! ```text
//! Lease as read, own identity, now -> Candidate -> take | renew | wait -> Elector -> Claim -> Leadership -> every write
//!                                    (pure)                            (shell)              (checked at use)
//! ```
//!
//! The Lease of `coordination.k8s.io/v1` is used like client-go uses it (`tools/leaderelection`), so that
//! tools for other operators work with this one. Three rules are stricter here:
//!
//! - **Every write is checked.** [`fenced`] forwards a write only while the [`LeaderTerm`] is current, at each attempt. A
//!   process that was suspended and resumes does not know yet that it lost the Lease, and still sends nothing.
//! - **A claim starts before its renewal was sent**, and ends at the renewal deadline, which is before any
//!   other replica may acquire the Lease. The time between covers clocks of different speeds, and writes in
//!   flight.
//! - **An expired claim is never revived.** The process exits, and restarts without state.
//!
//! The fence cannot stop a write that has passed it and arrives late. Two leaders must therefore do no harm:
//! each write of a Secret replaces the resourceVersion that was read, and each write of a `caBundle` tests
//! the previous value.

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
