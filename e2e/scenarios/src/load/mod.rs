//! Counted API traffic through webhooks.
//!
//! Each request goes to the API server as a client sends it. A request fails if the answer is not one that a
//! client expects. The API server's own 429 after a change of a CRD is retried as client-go does, and counted
//! separately.

mod availability;
mod counters;
mod generator;
mod informer;
mod latencies;
mod pace;
mod report;
mod worker;

pub use self::{
    availability::Availability,
    generator::Load,
    latencies::Latencies,
    report::{Failure, Report},
    worker::Clients,
};
