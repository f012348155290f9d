//! Evaluates policies for AdmissionReviews.
//!
//! ```text
//! watches -> index -> PolicyStore (compiled once a generation) -> PolicySnapshot
//!                                                                  |-> leader: proof -> webhook configurations
//!                                                                  |           `-> status, events
//!                                    AdmissionReview -> PolicyServer -> AdmissionReview
//! ```
//!
//! Every replica compiles the policies that it watches, and answers from them. A replica that has not listed
//! all policies yet answers with HTTP 503. Only the leader writes.
//!
//! The server answers before the API server's timeout: a policy that takes longer fails. Problems of a
//! request or of the server are HTTP errors, so that `failurePolicy` decides about them.
//!
//! Audit results go to reports (`reports`), which no request waits for.
//!
//! Data that policies refer to is fetched between evaluations (`references`); the policies are then evaluated
//! again with that data.
//!
//! The configurations are built from the existing policies, and each has one webhook for policies themselves.
//! Webhooks and rules are added only after every ready endpoint of the Service has served a trusted
//! certificate, has reported the policy generations to arm, and has answered a review. Webhooks and rules
//! that are no longer needed are removed without proof: even when no replica is ready, deleting the last
//! policy stops the API server from calling the webhook.

mod admission;
mod armed_policies;
mod armer;
mod breaker;
mod concurrency_limit;
mod configuration;
mod entries;
mod exclusions;
mod kinds;
mod metrics;
mod proof;
mod prune;
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
mod unserved;
mod verdict;

pub use self::{
    configuration::CONFIGURATION,
    references::{AllowedHost, AllowedHosts, InvalidHost, ReferenceOptions},
    reports::REPORT_DEFINITIONS,
    server::{MUTATE_PATH, VALIDATE_PATH},
};
pub(crate) use self::{
    exclusions::can_select,
    kinds::POLICY_KINDS,
    metrics::PolicyMetrics,
    references::References,
    reports::{AuditLedger, write_reports},
    run::run,
    server::PolicyServer,
    snapshot::PolicySnapshot,
    store::PolicyStore,
};
