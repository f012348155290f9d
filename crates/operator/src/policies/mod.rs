//! Policies, served: what they say is asked whenever an object is written.
//!
//! ```text
//! watches -> index -> PolicyStore (compiled once a generation) -> PolicySnapshot
//!                                                                  |-> leader: status, events
//!                                    AdmissionReview -> PolicyServer -> AdmissionReview
//! ```
//!
//! Every replica compiles what it watches, and answers from that; one that has not seen all policies yet answers nothing. The
//! leader alone writes.
//!
//! A request is answered before the API server gives up on it: what policies take longer for is a failure of theirs. What is
//! wrong with a request or with the server is told by the status of HTTP, so that the configuration says what becomes of that.

mod admission;
mod kinds;
mod review;
mod run;
mod server;
mod snapshot;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod unserved;
mod verdict;

pub(crate) use self::{run::run, server::PolicyServer, store::PolicyStore};
pub use self::server::{MUTATE_PATH, VALIDATE_PATH};
