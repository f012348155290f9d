//! The server of hooks, without a network.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test is what they are for"
)]

mod bodies;
mod discovery;
mod fixture;
mod handlers;
mod hostile;
mod limits;
mod routes;
