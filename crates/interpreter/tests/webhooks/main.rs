//! Webhooks over TLS: clients and servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "panics are how tests fail"
)]

mod calls;
mod hostile_callers;
mod hostile_servers;
mod rotation;
mod served;
