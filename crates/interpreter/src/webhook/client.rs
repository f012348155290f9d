//! Calls of webhooks over TLS.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tracing::warn;
use webhook_transport::{
    ServerReference,
    client::{PostError, Transport, TransportOptions},
    timeout::with_timeout,
};
use windlass_object::text::hexadecimal;

use super::{CallFuture, WebhookCallError, WebhookCaller};

/// Calls webhooks over TLS.
///
/// # Guarantees
///
/// - No call takes longer than its webhook's timeout, including retries.
/// - The size of an answer is limited by the transport, and redirects are not followed.
/// - Questions have no side effects, so failed calls are retried, and those that the server postpones with `Retry-After`.
#[derive(Clone, Debug)]
pub struct InterpreterClient {
    transport: Transport,
}

/// The largest answer in bytes, several times the size of any object.
const LARGEST_ANSWER: usize = 16 << 20;

/// How often a failed call is retried.
const RETRIES: u32 = 2;

/// The delay between two attempts of one call.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// How often a server may postpone a call, as in client-go.
const MOST_POSTPONEMENTS: u32 = 10;

impl InterpreterClient {
    /// Creates a client that uses `transport`.
    pub fn new(transport: Transport) -> Self {
        Self { transport }
    }

    /// Returns the default options: a webhook without a `caBundle` is verified with the system's root
    /// certificates.
    pub fn transport_options() -> TransportOptions {
        TransportOptions {
            largest_answer: LARGEST_ANSWER,
            system_roots: true,
            user_agent: concat!("interpreter/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..TransportOptions::default()
        }
    }

    async fn post(
        &self,
        server: &ServerReference,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, PostError> {
        let path = match server.prefix() {
            "" => "/",
            path => path,
        };
        let ends = Instant::now() + timeout;
        let (mut retries, mut postponements) = (RETRIES, MOST_POSTPONEMENTS);
        loop {
            let left = ends.saturating_duration_since(Instant::now());
            let asked = with_timeout(path, whole_seconds(left));
            let error = match self.transport.post(server, &asked, body.clone(), left).await {
                Ok(answer) => return Ok(answer),
                // After a retry, the remaining time is less than the whole timeout.
                Err(PostError::Timeout(_)) => return Err(PostError::Timeout(timeout)),
                Err(error) => error,
            };
            let delay = if let Some(delay) = postponed(&error).filter(|_| postponements > 0) {
                postponements -= 1;
                delay
            } else if error.is_transient() && retries > 0 {
                retries -= 1;
                RETRY_DELAY
            } else {
                return Err(error);
            };
            if delay >= ends.saturating_duration_since(Instant::now()) {
                return Err(error);
            }
            tokio::time::sleep(delay).await;
        }
    }
}

impl Default for InterpreterClient {
    fn default() -> Self {
        Self::new(Transport::new(Self::transport_options()))
    }
}

impl WebhookCaller for InterpreterClient {
    /// A random UUID (RFC 9562 §5.4).
    fn uid(&self) -> String {
        let mut bytes: [u8; 16] = rand::random();
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let [a, b, c, d, e] = [0..4, 4..6, 6..8, 8..10, 10..16].map(|range| hexadecimal(&bytes[range]));
        format!("{a}-{b}-{c}-{d}-{e}")
    }

    fn call<'a>(&'a self, server: &'a ServerReference, body: Bytes, timeout: Duration) -> CallFuture<'a> {
        Box::pin(async move {
            let posted = self.post(server, body, timeout).await;
            posted.map_err(|error| WebhookCallError {
                is_ignorable: !matches!(error, PostError::Trust(_) | PostError::Path(_)),
                source: error.into(),
            })
        })
    }

    fn on_ignored(&self, webhook: &str, failure: &(dyn Error + 'static)) {
        warn!(webhook, error = %failure, "Ignoring a failed call because of failurePolicy Ignore");
    }
}

/// Rounds up, as Karmada does.
fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
}

/// Returns the delay that a server requests with `Retry-After`.
fn postponed(error: &PostError) -> Option<Duration> {
    match error {
        PostError::Status {
            status, retry_after, ..
        } if status.as_u16() == 429 || status.is_server_error() => *retry_after,
        _ => None,
    }
}
