//! A registry of images in the process of a test, and what can be wrong with it.

#![expect(clippy::unwrap_used, reason = "what goes wrong fails the test")]

mod registry;

pub use registry::{ReceivedRequest, TestRegistry, cut_off, response, stalled, with_header};
