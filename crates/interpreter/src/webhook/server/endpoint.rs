//! Handles one request: decoding, the timeout, and the response.

use std::{
    any::Any, collections::BTreeMap, error::Error, panic::AssertUnwindSafe, sync::Arc, time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::body::Body;
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tracing::{error, info, warn};
use webhook_transport::{
    go_json,
    server::{only_post, panic_message, read_body, reply_json, reply_text},
    timeout::requested_timeout,
};
use windlass_object::{object, text};

use super::handler::{InterpreterCall, InterpreterHandler};
use crate::{
    Operation,
    webhook::{ResourceInterpreterContext, ResourceInterpreterRequest, ResourceInterpreterResponse},
};

/// The endpoint of one path.
#[derive(Clone)]
pub(super) struct InterpreterEndpoint {
    pub(super) path: Arc<str>,
    pub(super) handlers: BTreeMap<Operation, Arc<dyn InterpreterHandler>>,
    /// Limits concurrent calls.
    pub(super) turns: Arc<Semaphore>,
}

/// Why a request was rejected, as an HTTP status and a message.
struct Refusal(StatusCode, String);

/// The largest request body: several times the size of two objects.
const LONGEST_BODY: usize = 20 << 20;

/// The timeout of a call whose caller does not send one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest timeout of a caller.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of an error that are returned: it may quote the request.
const LONGEST_MESSAGE: usize = 512;

impl InterpreterEndpoint {
    /// Answers a request; any error becomes a response.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        let (parts, body) = request.into_parts();
        if parts.method != Method::POST {
            return only_post();
        }
        if !is_json(&parts.headers) {
            return reply_text(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            );
        }
        let asked = requested_timeout(&parts.uri, LONGEST_TIMEOUT);
        let deadline = Instant::now() + asked.unwrap_or(DEFAULT_TIMEOUT);
        let call = InterpreterCall {
            path: self.path.clone(),
            deadline,
            extensions: parts.extensions,
        };
        let Ok(response) = timeout_at(deadline, self.respond(body, call)).await else {
            warn!(path = %self.path, "Dropped a call that timed out");
            return reply_text(StatusCode::GATEWAY_TIMEOUT, "timed out");
        };
        match response {
            Ok(response) => self.write(response),
            Err(Refusal(status, message)) => {
                info!(path = %self.path, error = message, "Rejected a request");
                reply_text(status, message)
            }
        }
    }

    /// Creates a response with the uid of the request.
    ///
    /// # Errors
    ///
    /// When the uid cannot be decoded.
    async fn respond<B>(&self, body: B, call: InterpreterCall) -> Result<ResourceInterpreterResponse, Refusal>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.ok();
        let refusal = |message: String| Refusal(StatusCode::BAD_REQUEST, shortened(message));
        let body = read_body(body, LONGEST_BODY).await;
        let body = body.map_err(|error| refusal(format!("cannot read the request: {error}")))?;
        let value = go_json::whole_value(&body);
        let value = value.map_err(|error| refusal(format!("the request is not JSON: {error}")))?;
        drop(body);
        let uid = object::text(&value, "/request/uid")
            .unwrap_or_default()
            .to_owned();
        if uid.is_empty() {
            return Err(refusal("request.uid: is missing".to_owned()));
        }
        let answered = AssertUnwindSafe(self.handle(value, call)).catch_unwind().await;
        Ok(
            match answered.unwrap_or_else(|panic| Err(self.panicked(&*panic))) {
                Ok(response) => response,
                Err(Refusal(status, message)) => {
                    info!(path = %self.path, uid, error = message, "Failed a request");
                    ResourceInterpreterResponse::failure(uid, status.as_u16(), shortened(message))
                }
            },
        )
    }

    async fn handle(
        &self,
        value: Value,
        call: InterpreterCall,
    ) -> Result<ResourceInterpreterResponse, Refusal> {
        let bad = |message: String| Refusal(StatusCode::BAD_REQUEST, message);
        let context: ResourceInterpreterContext<'static> =
            go_json::read_value(value).map_err(|error| bad(error.to_string()))?;
        context.check_type().map_err(|error| bad(error.to_string()))?;
        let request = context
            .request
            .ok_or_else(|| bad("request: is missing".to_owned()))?;
        let operation = request.operation;
        let handler = self.handlers.get(&operation).ok_or_else(|| {
            let message = format!("no handler for {operation} at {}", self.path);
            Refusal(StatusCode::NOT_FOUND, message)
        })?;
        let failed = |message| Refusal(StatusCode::INTERNAL_SERVER_ERROR, message);
        // One copy for comparison with the answer, one for the handler.
        let sent: ResourceInterpreterRequest<'static> = request.clone();
        let answer = handler.handle(request, call).await.map_err(failed)?;
        ResourceInterpreterResponse::from_answer(&sent, answer).map_err(|error| failed(error.to_string()))
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Refusal {
        error!(path = %self.path, panic = panic_message(panic), "A handler panicked");
        Refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the handler panicked".to_owned(),
        )
    }

    fn write(&self, response: ResourceInterpreterResponse) -> Response<Full<Bytes>> {
        match serde_json::to_vec(&ResourceInterpreterContext::from_response(response)) {
            Ok(body) => reply_json(body),
            Err(error) => {
                error!(path = %self.path, %error, "Cannot encode a response");
                reply_text(StatusCode::INTERNAL_SERVER_ERROR, "cannot encode the response")
            }
        }
    }
}

/// Reports whether the content type is JSON, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let said = said.and_then(|said| said.split(';').next());
    said.is_some_and(|said| said.trim().eq_ignore_ascii_case("application/json"))
}

fn shortened(message: String) -> String {
    text::shortened(message, LONGEST_MESSAGE)
}
