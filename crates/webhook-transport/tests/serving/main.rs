//! Tests of the server with real TLS connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "panics are how tests fail"
)]

mod certificates;
mod client;
mod connections;
mod server;
mod shutdown;
