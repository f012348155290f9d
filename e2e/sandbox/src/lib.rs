//! An in-process Kubernetes API server: small, and limited to what Windlass needs.
//!
//! It follows the rules of the real server, and rejects requests that it does not support.

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
