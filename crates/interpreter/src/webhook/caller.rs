//! How requests come to webhooks.

use std::{error::Error, future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use webhook_transport::ServerReference;

/// What a webhook says, which may take a while.
pub type Calling<'a> = Pin<Box<dyn Future<Output = Result<Bytes, WebhookCallError>> + Send + 'a>>;

/// Brings requests to webhooks: over TLS, or to a server in the same process, for tests.
pub trait WebhookCaller: Send + Sync {
    /// What no other request is told by.
    fn uid(&self) -> String;

    /// Sends JSON, and returns what the server says within `timeout`.
    fn call<'a>(&'a self, server: &'a ServerReference, body: Bytes, timeout: Duration) -> Calling<'a>;

    /// Takes note that a webhook failed, and that whoever counts next is asked instead.
    fn ignored(&self, webhook: &str, failure: &(dyn Error + 'static)) {
        let _ = (webhook, failure);
    }
}

/// Why a webhook says nothing.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct WebhookCallError {
    /// Why.
    pub source: Box<dyn Error + Send + Sync>,
    /// Whether the call failed rather than what it was configured with: all that `failurePolicy: Ignore` is about.
    pub is_ignorable: bool,
}
