//! Our client calls our server, over TLS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test is what they are for"
)]

mod calls;
mod ending;
mod extension;
mod raw;
mod rotation;
