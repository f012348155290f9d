//! Handlers of hooks.

use std::{fmt::Display, future::Future, marker::PhantomData, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::Extensions;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    Hook, HookReference, HookResponse,
    catalog::HookDefinition,
    go_json::{self, DecodeError},
    response::{HookOutcome, ResponseStatus},
};

/// Information about a call besides the request.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The called hook.
    pub hook: HookReference,
    /// The name of the handler.
    pub handler: Arc<str>,
    /// The caller's deadline; the handler is dropped then.
    pub deadline: Instant,
    /// Extensions of the HTTP request, for example
    /// [`ConnectedClient`](webhook_transport::server::ConnectedClient).
    pub extensions: Extensions,
}

/// What a handler may return: a response or an error, which becomes a response that reports a failure with
/// the error's text.
pub trait IntoHookResponse<H: Hook> {
    /// Converts to a response.
    fn into_hook_response(self) -> H::Response;
}

/// A handler of any hook.
pub(super) trait AnyHandler: Send + Sync {
    /// Calls the handler and encodes its response as JSON.
    ///
    /// # Errors
    ///
    /// When `request` is not valid for the hook.
    fn call(&self, request: Value, context: CallContext) -> Result<Written, DecodeError>;

    /// Encodes a response that reports a failure.
    ///
    /// # Errors
    ///
    /// When it cannot be encoded as JSON.
    fn failure(&self, message: String) -> serde_json::Result<Vec<u8>>;
}

/// The future of an encoded response.
type Written = BoxFuture<'static, serde_json::Result<Vec<u8>>>;

/// A function as a handler of `H`.
pub(super) struct HandlerFunction<H, F> {
    function: F,
    hook: PhantomData<fn() -> H>,
}

/// A function as a handler of a hook that is only known at run time.
pub(super) struct JsonHandler<F> {
    function: F,
    definition: HookDefinition,
}

/// A response with `kind` and `apiVersion`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TypedResponse<R> {
    kind: String,
    api_version: String,
    #[serde(flatten)]
    response: R,
}

impl CallContext {
    /// The time until the caller's deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl<H: Hook<Response = R>, R: HookResponse> IntoHookResponse<H> for R {
    fn into_hook_response(self) -> R {
        self
    }
}

impl<H: Hook, E: Display> IntoHookResponse<H> for Result<H::Response, E> {
    fn into_hook_response(self) -> H::Response {
        // The alternate form includes the causes of many errors.
        self.unwrap_or_else(|error| failure::<H>(format!("{error:#}")))
    }
}

impl<H, F> HandlerFunction<H, F> {
    pub(super) fn new(function: F) -> Self {
        Self {
            function,
            hook: PhantomData,
        }
    }
}

impl<H, F, R> AnyHandler for HandlerFunction<H, F>
where
    H: Hook,
    F: Fn(H::Request, CallContext) -> R + Send + Sync,
    R: Future<Output: IntoHookResponse<H>> + Send + 'static,
{
    fn call(&self, request: Value, context: CallContext) -> Result<Written, DecodeError> {
        let response = (self.function)(go_json::read_value(request)?, context);
        Ok(Box::pin(async move {
            write::<H>(response.await.into_hook_response())
        }))
    }

    fn failure(&self, message: String) -> serde_json::Result<Vec<u8>> {
        write::<H>(failure::<H>(message))
    }
}

impl<F> JsonHandler<F> {
    pub(super) fn new(definition: &HookDefinition, function: F) -> Self {
        Self {
            function,
            definition: definition.clone(),
        }
    }
}

impl<F, R> AnyHandler for JsonHandler<F>
where
    F: Fn(Value, CallContext) -> R + Send + Sync,
    R: Future<Output = Result<Value, String>> + Send + 'static,
{
    fn call(&self, request: Value, context: CallContext) -> Result<Written, DecodeError> {
        self.definition.check_fields(&request)?;
        let response = (self.function)(request, context);
        let definition = self.definition.clone();
        Ok(Box::pin(async move {
            let response = response.await;
            write_json(&definition, response.unwrap_or_else(failure_response))
        }))
    }

    fn failure(&self, message: String) -> serde_json::Result<Vec<u8>> {
        write_json(&self.definition, failure_response(message))
    }
}

fn failure_response(message: String) -> Value {
    json!({ "status": ResponseStatus::Failure, "message": message })
}

fn write_json(definition: &HookDefinition, response: Value) -> serde_json::Result<Vec<u8>> {
    match response {
        Value::Object(fields) => serde_json::to_vec(&definition.typed_response(fields)),
        other => serde_json::to_vec(&other),
    }
}

fn failure<H: Hook>(message: String) -> H::Response {
    let mut response = H::Response::default();
    response.set_outcome(HookOutcome::failure(message));
    response
}

fn write<H: Hook>(response: H::Response) -> serde_json::Result<Vec<u8>> {
    let HookReference { api_version, hook } = H::reference();
    serde_json::to_vec(&TypedResponse {
        kind: format!("{hook}Response"),
        api_version,
        response,
    })
}
