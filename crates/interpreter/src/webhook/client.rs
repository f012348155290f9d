//! Calls over TLS.

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

use super::{Calling, WebhookCallError, WebhookCaller};

/// Calls webhooks over TLS.
///
/// # Guarantees
///
/// - No call takes longer than its webhook's timeout, however often it is tried.
/// - No more of an answer is read than the transport has as its limit, and no redirect is followed.
/// - Questions change nothing: a call that fails on its way is tried again, and so is one that the server puts off, when it says.
#[derive(Clone, Debug)]
pub struct InterpreterClient {
    transport: Transport,
}

/// The most bytes of an answer, several times those of any object.
const LARGEST_ANSWER: usize = 16 << 20;

/// How often a call is tried again that failed on its way.
const RETRIES: u32 = 2;

/// Between two attempts of one call.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// How often a server may put a call off, as client-go has it.
const MOST_POSTPONEMENTS: u32 = 10;

// === impl InterpreterClient ===

impl InterpreterClient {
    /// Calls by `transport`.
    pub fn new(transport: Transport) -> Self {
        Self { transport }
    }

    /// How webhooks are called where nothing else is said: one without a `caBundle` is trusted as the system trusts it.
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
                // It had less than the whole time if it was tried before.
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

    fn call<'a>(&'a self, server: &'a ServerReference, body: Bytes, timeout: Duration) -> Calling<'a> {
        Box::pin(async move {
            let posted = self.post(server, body, timeout).await;
            posted.map_err(|error| WebhookCallError {
                is_ignorable: !matches!(error, PostError::Trust(_) | PostError::Path(_)),
                source: error.into(),
            })
        })
    }

    fn ignored(&self, webhook: &str, failure: &(dyn Error + 'static)) {
        warn!(webhook, error = %failure, "Ignoring a failed call, by failurePolicy");
    }
}

/// Rounded up, as Karmada says it.
fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
}

/// When a server wants to be asked again that does not answer now.
fn postponed(error: &PostError) -> Option<Duration> {
    match error {
        PostError::Status {
            status, retry_after, ..
        } if status.as_u16() == 429 || status.is_server_error() => *retry_after,
        _ => None,
    }
}
