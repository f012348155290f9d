//! The hook server, without a network.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "panics are how tests fail"
)]

mod bodies;
mod discovery;
mod fixture;
mod handlers;
mod hostile;
mod limits;
mod routes;
