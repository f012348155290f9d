//! Handles one request: decoding, the timeout, and the response.

use std::{any::Any, error::Error, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use http::{Method, Request, Response, StatusCode, request::Parts};
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use thiserror::Error;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tracing::{error, info, warn};
use webhook_transport::{
    server::{ReadRequestError, only_post, panic_message, read_body, reply_json, reply_text},
    timeout::requested_timeout,
};
use windlass_object::text;

use super::{
    handler::{AnyHandler, CallContext},
    options::{HandlerOptions, LONGEST_TIMEOUT},
};
use crate::{
    HookReference,
    go_json::{self, DecodeError},
};

/// The endpoint of one path.
pub(super) struct HookEndpoint {
    hook: HookReference,
    name: Arc<str>,
    handler: Box<dyn AnyHandler>,
    timeout: Duration,
    turns: Semaphore,
}

/// Why the handler has no response.
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

/// The longest timeout of a caller.
const LONGEST: Duration = Duration::from_secs(LONGEST_TIMEOUT as u64);

/// Characters of a decoding error that are returned: it may quote the request.
const LONGEST_MESSAGE: usize = 512;

/// The largest request body (`maxExtensionRequestBodyBytes` of `exp/runtime/server/server.go`).
const LONGEST_BODY: usize = 20 << 20;

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

    /// Answers a request; any error becomes a response.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        let (parts, body) = request.into_parts();
        if parts.method != Method::POST {
            return only_post();
        }
        let deadline = Instant::now() + requested_timeout(&parts.uri, LONGEST).unwrap_or(self.timeout);
        let answer = AssertUnwindSafe(self.call(parts, body, deadline)).catch_unwind();
        let answer = match timeout_at(deadline, answer).await {
            Ok(answer) => answer.unwrap_or_else(|panic| Err(AnswerError::Panic(panic))),
            Err(_) => {
                warn!(hook = %self.hook, handler = %self.name, "Dropped a call that timed out");
                return reply_text(StatusCode::GATEWAY_TIMEOUT, "timed out");
            }
        };
        match answer.or_else(|error| self.failure(error)) {
            Ok(response) => reply_json(response),
            Err(error) => {
                error!(hook = %self.hook, handler = %self.name, %error, "Cannot encode a response");
                reply_text(StatusCode::INTERNAL_SERVER_ERROR, "unable to marshal response")
            }
        }
    }

    async fn call<B>(&self, parts: Parts, body: B, deadline: Instant) -> Result<Vec<u8>, AnswerError>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.ok();
        let body = read_body(body, LONGEST_BODY).await?;
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

    /// Creates a response that reports the error.
    fn failure(&self, error: AnswerError) -> serde_json::Result<Vec<u8>> {
        let message = text::shortened(error.to_string(), LONGEST_MESSAGE);
        match error {
            AnswerError::Write(error) => return Err(error),
            AnswerError::Panic(panic) => {
                let message = panic_message(&*panic);
                error!(hook = %self.hook, handler = %self.name, panic = message, "A handler panicked");
            }
            AnswerError::Read(_) | AnswerError::Decode(_) => {
                info!(hook = %self.hook, handler = %self.name, error = message, "Rejected a request");
            }
        }
        self.handler.failure(message)
    }
}
