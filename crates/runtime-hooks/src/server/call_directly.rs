//! Calls without a network, for tests of handlers: what is asked and answered goes through JSON as ever.

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
pub enum CallDirectlyError {
    /// The request cannot be JSON.
    #[error("cannot write the request: {0}")]
    Request(
        /// Why.
        String,
    ),
    /// The server answers with no response of a hook; callers count that as a call that failed.
    #[error("answered {status}: {message}")]
    Status {
        /// The status of HTTP.
        status: StatusCode,
        /// What the server says.
        message: String,
    },
    /// The response is not one of the hook.
    #[error("cannot read the response: {0}")]
    Response(
        /// What is wrong with it.
        DecodeError,
    ),
}

// === impl HookServer ===

impl HookServer {
    /// Calls a handler by its name, which does not matter where a hook is answered once. A response of a handler that failed is a
    /// response, too.
    ///
    /// # Errors
    ///
    /// When there is no such handler, it takes too long, or what it says is no response.
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
        let body = Value::Object(HookDefinition::of::<H>().typed_request(fields)).to_string();
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
