//! The operator: controllers that read what is there, ask pure functions for a plan, do its steps, and report.
//!
//! This is the only place where bundles, CustomResourceDefinitions and trust meet.

pub mod admission;
pub mod annotated_service;
pub mod bundle_deployment;
mod context;
mod controller;
pub mod direct_injection;
pub mod guard;
pub mod health;
mod injection;
pub mod install;
mod reporting;
pub mod serving_certificate;

pub use context::Context;
