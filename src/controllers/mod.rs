//! Small loops: read what is there, ask `domain` for a plan, hand its steps to `cluster`, report status.

pub mod annotated_service;
pub mod bundle_deployment;
mod context;
mod controller;
pub mod direct_injection;
mod injection;
pub mod serving_certificate;
mod status;
pub mod worker;

pub use context::Context;
