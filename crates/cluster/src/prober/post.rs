//! POST requests to webhooks on new connections, for conversion and admission.

use std::{net::SocketAddr, time::Duration};

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use windlass_object::text::tidied;

use super::{
    TrustAnchors,
    handshake::{ProbeError, Prober, probe_span},
};
use crate::telemetry::traces::{OpenSpan, SpanAttribute, run_in_span};

/// The address of a webhook, as the API server calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebhookAddress {
    /// `<service>.<namespace>.svc`.
    pub server_name: String,
    /// The path, with a leading slash.
    pub path: String,
}

/// Limits on the size and status of a response.
struct Accepted {
    /// The maximum number of bytes.
    largest: usize,
    is_success: fn(StatusCode) -> bool,
}

/// Responses that the API server accepts from a webhook.
const REVIEW: Accepted = Accepted {
    largest: 3 << 20,
    is_success: is_read_by_client_go,
};

/// Responses that Cluster API accepts from a runtime hook (`internal/runtime/client/client.go`), up to the
/// size of the handlers that fit into an ExtensionConfig.
const DISCOVERY: Accepted = Accepted {
    largest: 1 << 20,
    is_success: |status| status == StatusCode::OK,
};

/// The maximum number of characters to show of an error response.
const MAX_EXCERPT: usize = 200;

impl Prober {
    /// Posts `body` to `address` and returns the JSON of the response, which the caller validates.
    ///
    /// # Errors
    ///
    /// When the endpoint is not trusted, does not respond in time, closes the connection, or responds with an
    /// HTTP error or without JSON.
    pub async fn post(
        &self,
        address: SocketAddr,
        webhook: &WebhookAddress,
        trust: &TrustAnchors,
        body: &Value,
    ) -> Result<Value, ProbeError> {
        let exchanged = exchange(self, address, webhook, trust, body, &REVIEW);
        let answer = run_in_span(post_span(address, webhook), self.within(address, exchanged)).await?;
        serde_json::from_slice(&answer).map_err(|_| ProbeError::Answer {
            address,
            problem: format!("answered {} with a body that is not JSON", webhook.path),
        })
    }

    /// Calls discovery of a runtime hook server with the timeout `patience`, and returns the raw response.
    /// Redirects are not followed.
    ///
    /// # Errors
    ///
    /// When the endpoint is not trusted, does not respond in time, closes the connection, or responds with a
    /// status other than HTTP 200.
    pub async fn discover(
        &self,
        address: SocketAddr,
        hook: &WebhookAddress,
        trust: &TrustAnchors,
        body: &Value,
        patience: Duration,
    ) -> Result<Bytes, ProbeError> {
        let patient = self.with_timeout(patience);
        let exchanged = exchange(&patient, address, hook, trust, body, &DISCOVERY);
        run_in_span(post_span(address, hook), patient.within(address, exchanged)).await
    }
}

fn post_span(address: SocketAddr, webhook: &WebhookAddress) -> Option<OpenSpan> {
    let span = probe_span("POST webhook", address, &webhook.server_name)?;
    Some(
        span.with(SpanAttribute::new("http.request.method", "POST"))
            .with(SpanAttribute::new("url.path", webhook.path.clone())),
    )
}

async fn exchange(
    prober: &Prober,
    address: SocketAddr,
    webhook: &WebhookAddress,
    trust: &TrustAnchors,
    body: &Value,
    accepted: &Accepted,
) -> Result<Bytes, ProbeError> {
    let failed = |source| ProbeError::Http {
        address,
        path: webhook.path.clone(),
        source,
    };
    let (tls, presented) = prober.connect(address, &webhook.server_name, trust).await?;
    presented.check_trusted(address)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(tls)).await.map_err(failed)?;
    let problem = |problem: String| ProbeError::Answer { address, problem };
    let request = Request::post(&webhook.path)
        .header(header::HOST, &webhook.server_name)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .header(
            header::USER_AGENT,
            concat!("windlass/", env!("CARGO_PKG_VERSION")),
        )
        .header(header::CONNECTION, "close")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|error| problem(format!("{:?} is not a valid path: {error}", webhook.path)))?;
    let answered = async {
        let response = sender.send_request(request).await.map_err(failed)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), accepted.largest);
        let bytes = body
            .collect()
            .await
            .map_err(|error| problem(format!("answered {}: {error}", webhook.path)))?
            .to_bytes();
        if !(accepted.is_success)(status) {
            return Err(ProbeError::Status {
                address,
                path: webhook.path.clone(),
                status: status.as_u16(),
                words: excerpt(&bytes),
            });
        }
        Ok(bytes)
    };
    tokio::select! {
        answer = answered => answer,
        // Drives the connection; its end is irrelevant until the response is read.
        Err(error) = connection => Err(failed(error)),
    }
}

/// Statuses that client-go accepts (`transformResponse` of its `rest/request.go`).
fn is_read_by_client_go(status: StatusCode) -> bool {
    (StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&status)
}

/// Returns the beginning of an untrusted text, on one line.
fn excerpt(bytes: &[u8]) -> String {
    let line = tidied(&String::from_utf8_lossy(bytes));
    line.chars().take(MAX_EXCERPT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_pages_are_reduced_to_one_line() {
        assert_eq!(
            excerpt(b"404 page\n\tnot found\x1b[0m\n"),
            "404 page not found[0m"
        );
        assert_eq!(excerpt(&[b'x'; 5000]).len(), MAX_EXCERPT);
        assert_eq!(excerpt(&[0xff]), "\u{fffd}");
    }

    #[test]
    fn only_statuses_that_client_go_accepts_are_accepted() {
        for (status, expected) in [(200, true), (206, true), (207, false), (302, false), (404, false)] {
            assert_eq!(
                is_read_by_client_go(StatusCode::from_u16(status).unwrap()),
                expected,
                "{status}"
            );
        }
    }
}
