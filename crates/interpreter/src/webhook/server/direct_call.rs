//! Questions without a network, for tests of handlers. Requests and responses are still encoded as JSON.

use std::{sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use thiserror::Error;
use webhook_transport::{ServerReference, timeout::with_timeout};

use super::InterpreterServer;
use crate::{
    Answer, Question,
    webhook::{
        CallFuture, ResourceInterpreterContext, ResourceInterpreterRequest, WebhookCallError, WebhookCaller,
        WebhookError, WebhookRequestError,
    },
};

/// The server answered with an HTTP error, which callers count as a failed call.
#[derive(Debug, Error)]
#[error("answered {status}: {message}")]
struct NoResponseError {
    status: StatusCode,
    message: String,
}

/// The timeout of a direct call.
const TIMEOUT: Duration = Duration::from_secs(10);

impl InterpreterServer {
    /// Asks a question at a path.
    ///
    /// # Errors
    ///
    /// When there is no handler, it times out, or its response is invalid.
    pub async fn call_directly(&self, path: &str, question: Question<'_>) -> Result<Answer, WebhookError> {
        let uid = self.uid();
        let request = ResourceInterpreterRequest::from_question(question, uid.as_str())?;
        let body = serde_json::to_vec(&ResourceInterpreterContext::from_request(request));
        let body = body.map_err(WebhookRequestError::Write)?;
        let said = self.post_directly(path, body.into(), TIMEOUT).await?;
        Ok(Answer::read_response(&said, &uid, question)?)
    }

    async fn post_directly(
        &self,
        path: &str,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, WebhookCallError> {
        let failed = |source| WebhookCallError {
            source,
            is_ignorable: true,
        };
        let request = Request::post(with_timeout(path, timeout))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| failed(error.into()))?;
        let (parts, body) = self.answer(request).await.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(never) => match never {},
        };
        if parts.status != StatusCode::OK {
            let message = String::from_utf8_lossy(&body).into_owned();
            let status = parts.status;
            return Err(failed(NoResponseError { status, message }.into()));
        }
        Ok(body)
    }
}

/// Calls this server, ignoring the server's address, at the requested path.
impl WebhookCaller for InterpreterServer {
    fn uid(&self) -> String {
        self.asked.fetch_add(1, Ordering::Relaxed).to_string()
    }

    fn call<'a>(&'a self, server: &'a ServerReference, body: Bytes, timeout: Duration) -> CallFuture<'a> {
        Box::pin(self.post_directly(server.prefix(), body, timeout))
    }
}
