//! One POST to a webhook, on a connection of its own: what conversion and admission have in common.

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
use crate::telemetry::traces::{OpenSpan, SpanAttribute, spanned};

/// A place of a webhook server, as the API server calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebhookAddress {
    /// `<service>.<namespace>.svc`.
    pub server_name: String,
    /// The path, with a leading slash.
    pub path: String,
}

/// What is taken for an answer.
struct Accepted {
    /// The most bytes that are read.
    largest: usize,
    is_success: fn(StatusCode) -> bool,
}

/// What the API server takes of a webhook.
const REVIEW: Accepted = Accepted {
    largest: 3 << 20,
    is_success: is_read_by_client_go,
};

/// What Cluster API takes for an answer of a runtime hook (`internal/runtime/client/client.go`); as much as the handlers take for
/// which an ExtensionConfig has room.
const DISCOVERY: Accepted = Accepted {
    largest: 1 << 20,
    is_success: |status| status == StatusCode::OK,
};

/// The most characters that are shown of an answer which is an error.
const LONGEST_WORDS: usize = 200;

// === impl Prober ===

impl Prober {
    /// Posts `body` to `address` and returns the JSON of the answer, which nobody has judged yet.
    ///
    /// # Errors
    ///
    /// When the endpoint is not trusted, does not answer in time, closes the connection, or answers with an HTTP error or
    /// with what is no JSON.
    pub async fn post(
        &self,
        address: SocketAddr,
        webhook: &WebhookAddress,
        trust: &TrustAnchors,
        body: &Value,
    ) -> Result<Value, ProbeError> {
        let exchanged = exchange(self, address, webhook, trust, body, &REVIEW);
        let answer = spanned(post_span(address, webhook), self.within(address, exchanged)).await?;
        serde_json::from_slice(&answer).map_err(|_| ProbeError::Answer {
            address,
            problem: format!("answered {} with what is not JSON", webhook.path),
        })
    }

    /// Asks a server of runtime hooks which it answers. It has `patience`, and its answer is returned as nobody has read it yet.
    /// Redirects are not followed.
    ///
    /// # Errors
    ///
    /// When the endpoint is not trusted, does not answer in time, closes the connection, or answers with anything but HTTP 200.
    pub async fn discover(
        &self,
        address: SocketAddr,
        hook: &WebhookAddress,
        trust: &TrustAnchors,
        body: &Value,
        patience: Duration,
    ) -> Result<Bytes, ProbeError> {
        let patient = self.patient(patience);
        let exchanged = exchange(&patient, address, hook, trust, body, &DISCOVERY);
        spanned(post_span(address, hook), patient.within(address, exchanged)).await
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
    presented.trusted(address)?;
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
                words: words(&bytes),
            });
        }
        Ok(bytes)
    };
    tokio::select! {
        answer = answered => answer,
        // The connection is driven here; that it ended says nothing before the answer is read.
        Err(error) = connection => Err(failed(error)),
    }
}

/// What client-go takes for an answer (`transformResponse` of its `rest/request.go`).
fn is_read_by_client_go(status: StatusCode) -> bool {
    (StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&status)
}

/// The beginning of a text that somebody else wrote, on one line.
fn words(bytes: &[u8]) -> String {
    let line = tidied(&String::from_utf8_lossy(bytes));
    line.chars().take(LONGEST_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_page_becomes_a_line() {
        assert_eq!(words(b"404 page\n\tnot found\x1b[0m\n"), "404 page not found[0m");
        assert_eq!(words(&[b'x'; 5000]).len(), LONGEST_WORDS);
        assert_eq!(words(&[0xff]), "\u{fffd}");
    }

    #[test]
    fn only_what_client_go_takes_is_an_answer() {
        for (status, expected) in [(200, true), (206, true), (207, false), (302, false), (404, false)] {
            assert_eq!(
                is_read_by_client_go(StatusCode::from_u16(status).unwrap()),
                expected,
                "{status}"
            );
        }
    }
}
