//! Policies, served: what they say is asked whenever an object is written.
//!
//! ```text
//! watches -> index -> PolicyStore (compiled once a generation) -> PolicySnapshot
//!                                                                  |-> leader: proof -> webhook configurations
//!                                                                  |           `-> status, events
//!                                    AdmissionReview -> PolicyServer -> AdmissionReview
//! ```
//!
//! Every replica compiles what it watches, and answers from that; one that has not seen all policies yet answers nothing. The
//! leader alone writes.
//!
//! A request is answered before the API server gives up on it: what policies take longer for is a failure of theirs. What is
//! wrong with a request or with the server is told by the status of HTTP, so that the configuration says what becomes of that.
//!
//! What policies audit is told by reports (`reports`), which no request waits for.
//!
//! What policies refer to is read between evaluations (`references`), which are asked again with what came of it.
//!
//! The configurations are made from the policies that there are, and one webhook of each is for policies themselves. Nothing is
//! added to them before every ready endpoint of the Service has served a trusted certificate, has said that it knows the very
//! generations that are armed, and has answered a review. What is not needed any more is taken away, whoever answers:
//! where nobody does, deleting the last policy ends that anybody is asked.

mod admission;
mod armed;
mod arming;
mod breaker;
mod configuration;
mod entries;
mod kinds;
mod metrics;
mod never_asked;
mod proof;
mod reduction;
mod references;
mod reports;
mod request_gate;
mod review;
mod run;
mod server;
mod snapshot;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod turns;
mod unserved;
mod verdict;

pub use self::{
    configuration::CONFIGURATION,
    references::{AllowedHost, AllowedHosts, InvalidHost, ReferenceOptions},
    reports::REPORT_DEFINITIONS,
    server::{MUTATE_PATH, VALIDATE_PATH},
};
pub(crate) use self::{
    kinds::POLICY_KINDS,
    metrics::PolicyMetrics,
    never_asked::is_asked,
    references::References,
    reports::{AuditLedger, write_reports},
    run::run,
    server::PolicyServer,
    snapshot::PolicySnapshot,
    store::PolicyStore,
};
