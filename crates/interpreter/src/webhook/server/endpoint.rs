//! One request: what is asked, for how long, and what is answered, whatever becomes of the handler.

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
    timeout::asked_timeout,
};
use windlass_object::{object, text};

use super::handler::{InterpreterCall, InterpreterHandler};
use crate::{
    Operation,
    webhook::{ResourceInterpreterContext, ResourceInterpreterRequest, ResourceInterpreterResponse},
};

/// What is answered at one path.
#[derive(Clone)]
pub(super) struct InterpreterEndpoint {
    pub(super) path: Arc<str>,
    pub(super) handlers: BTreeMap<Operation, Arc<dyn InterpreterHandler>>,
    /// How many calls may be under way at a time.
    pub(super) turns: Arc<Semaphore>,
}

/// Why there is no answer of a handler, as a status of HTTP with words for people.
struct Refusal(StatusCode, String);

/// The longest body that is read: several times any two objects.
const LONGEST_BODY: usize = 20 << 20;

/// How long a call may take whose caller does not say for how long it waits.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest that any caller waits.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How much of what is wrong is told, in bytes: it may show the request.
const LONGEST_MESSAGE: usize = 512;

// === impl InterpreterEndpoint ===

impl InterpreterEndpoint {
    /// Answers one request, whatever it is.
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
        let asked = asked_timeout(&parts.uri, LONGEST_TIMEOUT);
        let deadline = Instant::now() + asked.unwrap_or(DEFAULT_TIMEOUT);
        let call = InterpreterCall {
            path: self.path.clone(),
            deadline,
            extensions: parts.extensions,
        };
        let Ok(response) = timeout_at(deadline, self.respond(body, call)).await else {
            warn!(path = %self.path, "Gave up a call that takes too long");
            return reply_text(StatusCode::GATEWAY_TIMEOUT, "timed out");
        };
        match response {
            Ok(response) => self.write(response),
            Err(Refusal(status, message)) => {
                info!(path = %self.path, error = message, "Refused a request");
                reply_text(status, message)
            }
        }
    }

    /// A response with the uid of the request.
    ///
    /// # Errors
    ///
    /// When the request has none that could be read.
    async fn respond<B>(&self, body: B, call: InterpreterCall) -> Result<ResourceInterpreterResponse, Refusal>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        // Closed by nobody.
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
            let message = format!("{operation} is not answered at {}", self.path);
            Refusal(StatusCode::NOT_FOUND, message)
        })?;
        let failed = |message| Refusal(StatusCode::INTERNAL_SERVER_ERROR, message);
        // Both are needed: what was sent, to tell what differs, and what the handler may take apart.
        let sent: ResourceInterpreterRequest<'static> = request.clone();
        let answer = handler.handle(request, call).await.map_err(failed)?;
        ResourceInterpreterResponse::of(&sent, answer).map_err(|error| failed(error.to_string()))
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Refusal {
        error!(path = %self.path, panic = panic_message(panic), "A handler panicked");
        Refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the handler panicked".to_owned(),
        )
    }

    fn write(&self, response: ResourceInterpreterResponse) -> Response<Full<Bytes>> {
        match serde_json::to_vec(&ResourceInterpreterContext::of_response(response)) {
            Ok(body) => reply_json(body),
            Err(error) => {
                error!(path = %self.path, %error, "Cannot write a response");
                reply_text(StatusCode::INTERNAL_SERVER_ERROR, "cannot write the response")
            }
        }
    }
}

/// Whether a request says that it is JSON, with whatever parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let said = said.and_then(|said| said.split(';').next());
    said.is_some_and(|said| said.trim().eq_ignore_ascii_case("application/json"))
}

fn shortened(message: String) -> String {
    text::shortened(message, LONGEST_MESSAGE)
}
