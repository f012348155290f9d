//! Transport of requests to webhooks.

use std::{error::Error, future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use webhook_transport::ServerReference;

/// The future of a webhook's response.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<Bytes, WebhookCallError>> + Send + 'a>>;

/// Sends requests to webhooks: over TLS, or to a server in the same process for tests.
pub trait WebhookCaller: Send + Sync {
    /// Returns a unique ID for a request.
    fn uid(&self) -> String;

    /// Sends JSON; returns the response of the server within `timeout`.
    fn call<'a>(&'a self, server: &'a ServerReference, body: Bytes, timeout: Duration) -> CallFuture<'a>;

    /// Called when the failure of a webhook is ignored, and the next interpreter is used.
    fn on_ignored(&self, webhook: &str, failure: &(dyn Error + 'static)) {
        let _ = (webhook, failure);
    }
}

/// Why a webhook has no response.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct WebhookCallError {
    /// The underlying error.
    pub source: Box<dyn Error + Send + Sync>,
    /// Whether the call itself failed, as opposed to an invalid configuration: `failurePolicy: Ignore`
    /// applies only then.
    pub is_ignorable: bool,
}
