//! API traffic through webhooks, counted.
//!
//! Every request goes to the API server as a client's would. A request fails when it is answered with anything
//! but what a client may expect; the API server's own 429 after a change of a CRD is retried as client-go does,
//! and counted apart.

mod counters;
mod generator;
mod latencies;
mod pace;
mod report;
mod worker;

pub use self::{
    generator::Load,
    latencies::Latencies,
    report::{Failure, Report},
    worker::Clients,
};
