//! Webhooks that are called over TLS, and those who serve them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test is what they are for"
)]

mod calls;
mod hostile_callers;
mod hostile_servers;
mod rotation;
mod served;
