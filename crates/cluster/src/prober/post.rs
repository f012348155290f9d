//! One POST to a webhook, on a connection of its own: what conversion and admission have in common.

use std::net::SocketAddr;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use windlass_object::text::tidied;

use super::{
    TrustAnchors,
    handshake::{ProbeError, Prober},
};

/// A place of a webhook server, as the API server calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebhookAddress {
    /// `<service>.<namespace>.svc`.
    pub server_name: String,
    /// The path, with a leading slash.
    pub path: String,
}

/// The most bytes of an answer that are read.
const LARGEST_ANSWER: usize = 3 << 20;

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
        self.within(address, exchange(self, address, webhook, trust, body))
            .await
    }
}

async fn exchange(
    prober: &Prober,
    address: SocketAddr,
    webhook: &WebhookAddress,
    trust: &TrustAnchors,
    body: &Value,
) -> Result<Value, ProbeError> {
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
        let body = Limited::new(response.into_body(), LARGEST_ANSWER);
        let bytes = body
            .collect()
            .await
            .map_err(|error| problem(format!("answered {}: {error}", webhook.path)))?
            .to_bytes();
        if !is_success(status) {
            return Err(ProbeError::Status {
                address,
                path: webhook.path.clone(),
                status: status.as_u16(),
                words: words(&bytes),
            });
        }
        serde_json::from_slice(&bytes)
            .map_err(|_| problem(format!("answered {} with what is not JSON", webhook.path)))
    };
    tokio::select! {
        answer = answered => answer,
        // The connection is driven here; that it ended says nothing before the answer is read.
        Err(error) = connection => Err(failed(error)),
    }
}

/// What client-go takes for an answer (`transformResponse` of its `rest/request.go`).
fn is_success(status: StatusCode) -> bool {
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
                is_success(StatusCode::from_u16(status).unwrap()),
                expected,
                "{status}"
            );
        }
    }
}
