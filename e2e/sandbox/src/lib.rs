//! An in-process Kubernetes API server: small, honest, and only what Windlass's paths need.
//!
//! Its rules are the real server's. What it does not know it refuses loudly; it never pretends.

pub mod admission;
mod authority;
pub mod builtin;
mod controllers;
pub mod conversion;
pub mod crd;
mod error;
pub mod field;
pub mod ownership;
pub mod patch;
mod sandbox;
pub mod schema;
pub mod server;
pub mod storage;
pub mod webhook;

pub use error::{Cause, StatusError, Subject};
pub use sandbox::{Sandbox, SandboxOptions, StartError};
