//! A single POST request.

use std::{error::Error, time::Duration};

use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header, uri::Scheme};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy;
use thiserror::Error;
use windlass_object::text::tidied;

use super::{Transport, TrustError, answer_memory::TooLargeError};
use crate::ServerReference;

/// Why a call has no answer.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum PostError {
    /// The server cannot be verified.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The path is not valid in a request.
    #[error("{0:?} is not a path")]
    Path(String),
    /// The connection or the TLS handshake failed.
    #[error("cannot connect: {0}")]
    Connect(
        /// The causes, outermost first.
        String,
    ),
    /// The connection ended before the answer.
    #[error("the connection ended without an answer: {0}")]
    Interrupted(
        /// The causes, outermost first.
        String,
    ),
    /// The call timed out.
    #[error("no answer within {:.1}s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The answer exceeds the size limit.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(
        /// The limit in bytes.
        usize,
    ),
    /// The status is not 200. Redirects are not followed.
    #[error("HTTP {status}{}", if .excerpt.is_empty() { String::new() } else { format!(": {excerpt}") })]
    Status {
        status: StatusCode,
        /// The beginning of the response body.
        excerpt: String,
        /// The `Retry-After` header (RFC 9110 §10.2.3), if it is given in seconds.
        retry_after: Option<Duration>,
    },
}

/// Characters of a response body that an error quotes.
const MAX_EXCERPT: usize = 512;

impl PostError {
    /// Reports whether an immediate retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Interrupted(_))
    }

    fn from_client_error(error: &legacy::Error) -> Self {
        let mut words = Vec::new();
        let mut next: Option<&dyn Error> = error.source();
        while let Some(error) = next {
            let message = error.to_string();
            // Many layers repeat the message of their cause.
            if !words.iter().any(|known: &String| known.contains(&message)) {
                words.push(message);
            }
            next = error.source();
        }
        let words = words.join(": ");
        match error.is_connect() {
            true => Self::Connect(words),
            false => Self::Interrupted(words),
        }
    }
}

impl Transport {
    /// Posts JSON to `path` of a server, appended verbatim to the server's prefix, and returns the answer.
    /// Redirects are not followed.
    ///
    /// # Errors
    ///
    /// When there is no answer with status 200 within `timeout`.
    pub async fn post(
        &self,
        server: &ServerReference,
        path: &str,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, PostError> {
        // Boxed because the future is large and would be copied into every caller's future.
        let exchanged = Box::pin(self.exchange(server, path, body));
        match tokio::time::timeout(timeout, exchanged).await {
            Ok(answer) => answer,
            Err(_) => Err(PostError::Timeout(timeout)),
        }
    }

    fn request(
        &self,
        server: &ServerReference,
        path: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        const JSON: HeaderValue = HeaderValue::from_static("application/json");
        let url = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(server.authority.clone())
            .path_and_query(path)
            .build()?;
        Request::post(url)
            .header(header::CONTENT_TYPE, JSON)
            .header(header::ACCEPT, JSON)
            .header(header::USER_AGENT, &self.options.user_agent)
            .body(Full::new(body))
    }

    async fn exchange(&self, server: &ServerReference, path: &str, body: Bytes) -> Result<Bytes, PostError> {
        let pool = self.pool(server)?;
        let request = self.request(server, path, body);
        let request = request.map_err(|_| PostError::Path(path.to_owned()))?;
        let response = pool
            .request(request)
            .await
            .map_err(|error| PostError::from_client_error(&error))?;
        let status = response.status();
        if status != StatusCode::OK {
            let retry_after = retry_after(response.headers());
            let excerpt = excerpt(&read_prefix(response.into_body()).await);
            return Err(PostError::Status {
                status,
                excerpt,
                retry_after,
            });
        }
        self.read(response.into_body()).await
    }

    /// Reads the answer, waiting for memory if necessary.
    async fn read(&self, mut body: Incoming) -> Result<Bytes, PostError> {
        let mut answer = self.memory.answer();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| PostError::Interrupted(error.to_string()))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let read = answer.extend(&data).await;
            read.map_err(|TooLargeError| PostError::TooLarge(self.options.largest_answer))?;
        }
        Ok(answer.into_bytes())
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// Reads as much of a body as an error quotes.
async fn read_prefix(mut body: Incoming) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        read.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        if read.len() >= MAX_EXCERPT * 4 {
            break;
        }
    }
    read
}

/// Returns the beginning of a response body as one line.
fn excerpt(bytes: &[u8]) -> String {
    let line = tidied(&String::from_utf8_lossy(bytes));
    line.chars().take(MAX_EXCERPT).collect()
}
