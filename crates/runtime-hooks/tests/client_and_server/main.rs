//! Our client and our server, over TLS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "panics are how tests fail"
)]

mod calls;
mod extension;
mod raw;
mod rotation;
mod shutdown;
