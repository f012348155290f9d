//! HTTP over TLS between controllers and webhooks, for both sides (features `client` and `server`).
//!
//! This crate knows nothing about the content of requests and responses.

mod base64_bytes;
mod ca_bundle;
#[cfg(feature = "client")]
pub mod client;
#[cfg(any(feature = "client", feature = "server"))]
mod files;
pub mod go_json;
#[cfg(any(feature = "client", feature = "server"))]
mod live_certificate;
#[cfg(any(feature = "client", feature = "server"))]
mod reloaded;
#[cfg(feature = "server")]
pub mod server;
mod server_reference;
pub mod timeout;

pub use base64_bytes::Base64Bytes;
pub use ca_bundle::{CaBundleError, check_ca_bundle};
#[cfg(any(feature = "client", feature = "server"))]
pub use files::{CertificateFiles, LoadFilesError};
#[cfg(any(feature = "client", feature = "server"))]
pub use live_certificate::LiveCertificate;
pub use server_reference::{ServerError, ServerReference, is_url_path};
