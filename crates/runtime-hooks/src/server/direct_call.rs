//! Calls without a network, for tests of handlers. Requests and responses are still encoded as JSON.

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use serde_json::Value;
use thiserror::Error;

use super::hook_server::HookServer;
use crate::{
    Hook,
    catalog::HookDefinition,
    go_json::{self, DecodeError},
};

/// Why a call has no response.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum CallDirectlyError {
    /// The request cannot be encoded as JSON.
    #[error("cannot write the request: {0}")]
    Request(String),
    /// The server answered with an HTTP error, which callers count as a failed call.
    #[error("answered {status}: {message}")]
    Status {
        /// The HTTP status.
        status: StatusCode,
        message: String,
    },
    /// The response is not valid for the hook.
    #[error("cannot read the response: {0}")]
    Response(DecodeError),
}

impl HookServer {
    /// Calls a handler by its name, which is ignored for a singleton. A response that reports a failure is
    /// returned as `Ok`.
    ///
    /// # Errors
    ///
    /// When the handler does not exist or times out, or its response is invalid.
    pub async fn call_directly<H: Hook>(
        &self,
        handler: &str,
        request: H::Request,
    ) -> Result<H::Response, CallDirectlyError> {
        let unwritable = |error: &dyn std::fmt::Display| CallDirectlyError::Request(error.to_string());
        let fields = match serde_json::to_value(request) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(unwritable(&"must be an object")),
            Err(error) => return Err(unwritable(&error)),
        };
        let body = Value::Object(HookDefinition::for_hook::<H>().typed_request(fields)).to_string();
        let request = Request::post(self.path::<H>(handler)).body(Full::new(Bytes::from(body)));
        let request = request.map_err(|error| unwritable(&error))?;
        let (parts, body) = self.answer(request).await.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(never) => match never {},
        };
        if parts.status != StatusCode::OK {
            return Err(CallDirectlyError::Status {
                status: parts.status,
                message: String::from_utf8_lossy(&body).into_owned(),
            });
        }
        go_json::read(&body).map_err(CallDirectlyError::Response)
    }
}
