//! The client and the server of this crate, connected over TLS.

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
