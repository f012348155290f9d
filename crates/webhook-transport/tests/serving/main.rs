//! The server over real TLS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test is what they are for"
)]

mod certificates;
mod client;
mod connections;
mod ending;
mod server;
