//! Calls webhooks like kube-apiserver: over TLS, with the given bundle and server name.

mod client;
mod connection;
mod endpoints;
mod error;
mod target;

pub use client::WebhookClient;
pub use endpoints::{Endpoints, ResolveError};
pub use error::CallError;
pub use target::WebhookClientConfig;
pub(crate) use target::default_client_config;

#[cfg(test)]
mod tests;
