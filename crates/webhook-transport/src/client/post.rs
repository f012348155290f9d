//! One call.

use std::{error::Error, time::Duration};

use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header, uri::Scheme};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy;
use thiserror::Error;
use windlass_object::text::tidied;

use super::{Transport, TrustError, answer_memory::TooLargeError};
use crate::ServerReference;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum PostError {
    /// The server cannot be judged.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// What is asked cannot stand in a request.
    #[error("{0:?} is not a path")]
    Path(
        /// The path.
        String,
    ),
    /// No connection, or none on which it is trusted.
    #[error("cannot connect: {0}")]
    Connect(
        /// Why, from the outermost.
        String,
    ),
    /// The connection ended before there was an answer.
    #[error("the connection ended without an answer: {0}")]
    Interrupted(
        /// Why, from the outermost.
        String,
    ),
    /// It took too long.
    #[error("no answer within {:.1}s", .0.as_secs_f32())]
    Timeout(
        /// How long it had.
        Duration,
    ),
    /// It answers more than anybody reads.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(
        /// The most.
        usize,
    ),
    /// It answers with another status than 200; what it says is shown, not followed.
    #[error("HTTP {status}{}", if .words.is_empty() { String::new() } else { format!(": {words}") })]
    Status {
        /// The status.
        status: StatusCode,
        /// The beginning of the body.
        words: String,
        /// When to ask again, where it says so (RFC 9110 §10.2.3) in seconds.
        retry_after: Option<Duration>,
    },
}

/// How much of what a server says is repeated, in characters.
const LONGEST_WORDS: usize = 512;

// === impl PostError ===

impl PostError {
    /// Whether another call may fare better at once.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Interrupted(_))
    }

    fn of(error: &legacy::Error) -> Self {
        let mut words = Vec::new();
        let mut next: Option<&dyn Error> = error.source();
        while let Some(error) = next {
            let said = error.to_string();
            // Each layer repeats what is inside of it, or says nothing of its own.
            if !words.iter().any(|known: &String| known.contains(&said)) {
                words.push(said);
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

// === impl Transport ===

impl Transport {
    /// Posts JSON to `path` of a server, behind its prefix as it is written there, and returns what it answers. Redirects are not
    /// followed.
    ///
    /// # Errors
    ///
    /// When there is no answer of status 200 within `timeout`.
    pub async fn post(
        &self,
        server: &ServerReference,
        path: &str,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, PostError> {
        // Boxed: it is large, and would be moved by each future that it is in.
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
            .map_err(|error| PostError::of(&error))?;
        let status = response.status();
        if status != StatusCode::OK {
            let retry_after = retry_after(response.headers());
            let words = words(&beginning(response.into_body()).await);
            return Err(PostError::Status {
                status,
                words,
                retry_after,
            });
        }
        self.read(response.into_body()).await
    }

    /// Reads an answer, as far as there is memory for it.
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

/// As much of a body as there is to show.
async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        read.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        if read.len() >= LONGEST_WORDS * 4 {
            break;
        }
    }
    read
}

/// The beginning of a text that somebody else wrote, on one line.
fn words(bytes: &[u8]) -> String {
    let line = tidied(&String::from_utf8_lossy(bytes));
    line.chars().take(LONGEST_WORDS).collect()
}
