//! One request: what is asked, for how long, and what is answered, whatever becomes of the handler.

use std::{any::Any, error::Error, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ALLOW, CONTENT_TYPE},
    request::Parts,
};
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use thiserror::Error;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tracing::{error, info, warn};
use windlass_object::{GoDuration, text};

use super::{
    body::{self, ReadRequestError},
    handler::{AnyHandler, CallContext},
    options::{HandlerOptions, LONGEST_TIMEOUT},
};
use crate::{
    HookReference,
    go_json::{self, DecodeError},
};

/// What is answered at one path.
pub(super) struct HookEndpoint {
    hook: HookReference,
    name: Arc<str>,
    handler: Box<dyn AnyHandler>,
    timeout: Duration,
    turns: Semaphore,
}

/// Why there is no response of the handler.
#[derive(Debug, Error)]
enum AnswerError {
    #[error("error reading request: {0}")]
    Read(#[from] ReadRequestError),
    #[error("error unmarshalling request: {0}")]
    Decode(#[from] DecodeError),
    #[error("handler panicked")]
    Panic(Box<dyn Any + Send>),
    #[error("unable to marshal response: {0}")]
    Write(serde_json::Error),
}

/// How much of what is wrong with a request is told, in characters: it may show the request.
const LONGEST_MESSAGE: usize = 512;

/// What a caller adds to the path to say for how long it waits, in Go's syntax.
const TIMEOUT: &str = "timeout";

// === impl HookEndpoint ===

impl HookEndpoint {
    pub(super) fn new(
        hook: HookReference,
        name: &str,
        options: &HandlerOptions,
        handler: impl AnyHandler + 'static,
    ) -> Self {
        Self {
            hook,
            name: name.into(),
            handler: Box::new(handler),
            timeout: options.timeout(),
            turns: Semaphore::new(options.concurrency.clamp(1, Semaphore::MAX_PERMITS)),
        }
    }

    /// Answers one request, whatever it is.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        let (parts, body) = request.into_parts();
        if parts.method != Method::POST {
            return only_post();
        }
        let deadline = Instant::now() + asked_timeout(&parts.uri).unwrap_or(self.timeout);
        let answer = AssertUnwindSafe(self.call(parts, body, deadline)).catch_unwind();
        let answer = match timeout_at(deadline, answer).await {
            Ok(answer) => answer.unwrap_or_else(|panic| Err(AnswerError::Panic(panic))),
            Err(_) => {
                warn!(hook = %self.hook, handler = %self.name, "Gave up a call that takes too long");
                return text(StatusCode::GATEWAY_TIMEOUT, "timed out");
            }
        };
        match answer.or_else(|error| self.failure(error)) {
            Ok(response) => json(response),
            Err(error) => {
                error!(hook = %self.hook, handler = %self.name, %error, "Cannot write a response");
                text(StatusCode::INTERNAL_SERVER_ERROR, "unable to marshal response")
            }
        }
    }

    async fn call<B>(&self, parts: Parts, body: B, deadline: Instant) -> Result<Vec<u8>, AnswerError>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        // Closed by nobody.
        let _turn = self.turns.acquire().await.ok();
        let body = body::read(body).await?;
        let request = go_json::whole_value(&body).map_err(DecodeError::Syntax)?;
        drop(body);
        let context = CallContext {
            hook: self.hook.clone(),
            handler: self.name.clone(),
            deadline,
            extensions: parts.extensions,
        };
        let response = self.handler.call(request, context)?;
        response.await.map_err(AnswerError::Write)
    }

    /// A response that says what went wrong.
    fn failure(&self, error: AnswerError) -> serde_json::Result<Vec<u8>> {
        let message = text::shortened(error.to_string(), LONGEST_MESSAGE);
        match error {
            AnswerError::Write(error) => return Err(error),
            AnswerError::Panic(panic) => {
                let said = said(&*panic);
                error!(hook = %self.hook, handler = %self.name, panic = said, "A handler panicked");
            }
            AnswerError::Read(_) | AnswerError::Decode(_) => {
                info!(hook = %self.hook, handler = %self.name, error = message, "Refused a request");
            }
        }
        self.handler.failure(message)
    }
}

/// For how long a caller says that it waits, and no longer than any may. Where that makes no sense, it says nothing.
fn asked_timeout(uri: &Uri) -> Option<Duration> {
    let mut parameters = uri.query()?.split('&');
    let asked = parameters.find_map(|parameter| parameter.strip_prefix(TIMEOUT)?.strip_prefix('='))?;
    let GoDuration(asked) = asked.parse().ok()?;
    let asked = asked.unsigned_abs();
    (!asked.is_zero()).then_some(asked.min(Duration::from_secs(LONGEST_TIMEOUT.into())))
}

/// What a panic says of itself.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or_default()
}

fn json(body: Vec<u8>) -> Response<Full<Bytes>> {
    respond(StatusCode::OK, "application/json", body.into())
}

/// What is not a response of a hook.
pub(super) fn text(status: StatusCode, message: &'static str) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", message.into())
}

fn only_post() -> Response<Full<Bytes>> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only POST is answered");
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

fn respond(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_says_for_how_long_it_waits() {
        for (uri, expected) in [
            ("/", None),
            ("/?", None),
            ("/?timeout", None),
            ("/?timeout=", None),
            ("/?timeout=5", None),
            ("/?timeout=0s", None),
            ("/?timeout=-5s", None),
            ("/?timeout=soon", None),
            ("/?xtimeout=5s", None),
            ("/?timeouts=5s", None),
            ("/?timeout=5s", Some(5_000)),
            ("/?a=b&timeout=500ms&c", Some(500)),
            ("/?timeout=2s&timeout=5s", Some(2_000)),
            ("/?timeout=0m1.5s", Some(1_500)),
            ("/?timeout=30s", Some(30_000)),
            ("/?timeout=1m30s", Some(30_000)),
            ("/?timeout=1h", Some(30_000)),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(asked_timeout(&uri.parse().unwrap()), expected, "{uri}");
        }
    }
}
