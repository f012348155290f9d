//! An image registry in the test process, with configurable faults.

#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

mod registry;

pub use registry::{ReceivedRequest, TestRegistry, cut_off, response, stalled, with_header};
