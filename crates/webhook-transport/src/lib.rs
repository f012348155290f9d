//! HTTP over TLS between controllers and webhooks, for both sides (features `client` and `server`).
//!
//! Nothing here knows what is asked and answered.

mod called_server;
#[cfg(feature = "client")]
pub mod client;

pub use called_server::{CalledServer, ServerError};
