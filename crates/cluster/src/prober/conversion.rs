//! Proof by converting: the pod itself is sent a ConversionReview, and its answer is judged as the API server would.

use std::net::SocketAddr;

use http::{Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use windlass_crd::conversion_review::ConversionReview;
use windlass_object::text::tidied;

use super::{
    TrustAnchors,
    handshake::{ProbeError, Prober},
};

/// A conversion webhook as the API server calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConversionWebhook {
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
    /// Sends `review` to `address` and returns the converted objects.
    ///
    /// # Errors
    ///
    /// When the endpoint is not trusted, does not answer, or answers what the API server would refuse.
    pub async fn convert(
        &self,
        address: SocketAddr,
        webhook: &ConversionWebhook,
        trust: &TrustAnchors,
        review: &ConversionReview,
    ) -> Result<Vec<Value>, ProbeError> {
        let answer = self
            .within(address, self.post(address, webhook, trust, review))
            .await?;
        review
            .converted(&answer)
            .map_err(|problem| ProbeError::Conversion {
                address,
                problem: problem.to_string(),
            })
    }

    async fn post(
        &self,
        address: SocketAddr,
        webhook: &ConversionWebhook,
        trust: &TrustAnchors,
        review: &ConversionReview,
    ) -> Result<Value, ProbeError> {
        let failed = |source| ProbeError::Http { address, source };
        let (tls, presented) = self.connect(address, &webhook.server_name, trust).await?;
        presented.trusted(address)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(tls)).await.map_err(failed)?;
        let body = Full::new(Bytes::from(review.request().to_string()));
        let problem = |problem: String| ProbeError::Conversion { address, problem };
        let request = Request::post(&webhook.path)
            .header(header::HOST, &webhook.server_name)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(
                header::USER_AGENT,
                concat!("windlass/", env!("CARGO_PKG_VERSION")),
            )
            .header(header::CONNECTION, "close")
            .body(body)
            .map_err(|error| problem(format!("{:?} is not a valid path: {error}", webhook.path)))?;
        let answered = async {
            let response = sender.send_request(request).await.map_err(failed)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LARGEST_ANSWER);
            let bytes = body
                .collect()
                .await
                .map_err(|error| problem(error.to_string()))?
                .to_bytes();
            if status != http::StatusCode::OK {
                return Err(ProbeError::Status {
                    address,
                    path: webhook.path.clone(),
                    status: status.as_u16(),
                    words: words(&bytes),
                });
            }
            serde_json::from_slice(&bytes).map_err(|_| problem("the response is not JSON".to_owned()))
        };
        tokio::select! {
            answer = answered => answer,
            // The connection is driven here; that it ended says nothing before the answer is read.
            Err(error) = connection => Err(failed(error)),
        }
    }
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
}
