//! The client's contract with foreign servers: the behaviours of Cluster API's own client one by one, and its
//! bugs, which this client does not have.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "panics are how tests fail"
)]

mod calls;
mod changes;
mod circuits;
mod discovery;
mod metrics;
mod namespaces;
mod peer;
mod proxies;
mod raw;
mod wire;
