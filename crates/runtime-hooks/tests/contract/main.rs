//! What our client owes to servers that are not ours, row by row of what Cluster API's own client does; and what that does wrong,
//! which ours does not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test is what they are for"
)]

mod calls;
mod circuits;
mod discovery;
mod flipping;
mod metrics;
mod namespaces;
mod peer;
mod proxies;
mod raw;
mod wire;
