//! Calls of one handler, and of all handlers of a hook.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_json::Value;
use tracing::{debug, warn};
use webhook_transport::{client::PostError, timeout::with_timeout};

use super::{
    CallOptions, CallOrder, HandlerError, HookCallError, HookClient, metrics,
    request::{HandlerRequest, PreparedRequest},
    response_cache,
};
use crate::{
    Hook, HookReference, HookResponse,
    catalog::{ConversionPath, HookDefinition},
    discovery::FailurePolicy,
    go_json::{self, DecodeError},
    registry::RegisteredHandler,
    response::{HookOutcome, ResponseStatus},
};

/// A response, either of a Rust type or as JSON.
trait ReadResponse: Send + Sized {
    /// Decodes a response in the caller's version.
    fn read(body: &[u8]) -> Result<(Self, HookOutcome), DecodeError>;

    /// Decodes a response from a parsed JSON value.
    fn read_value(value: Value) -> Result<(Self, HookOutcome), DecodeError>;

    /// Creates a response with only an outcome.
    fn from_outcome(outcome: HookOutcome) -> Self;
}

/// A response of a Rust type.
struct Typed<R>(R);

/// A response of any hook, as JSON.
struct Untyped(Value);

/// The delay between two attempts of one call.
const RETRY_DELAY: Duration = Duration::from_millis(50);

impl HookClient {
    /// Returns the names of the handlers that would be called for an object in `namespace`, which is empty
    /// for a cluster-scoped object.
    ///
    /// # Errors
    ///
    /// When the hook is not in the catalog, the registry is not listed yet, or the labels of a namespace
    /// cannot be read.
    pub async fn handlers<H: Hook>(&self, namespace: &str) -> Result<Vec<String>, HookCallError> {
        let hook = H::reference();
        self.definition(&hook)?;
        let handlers = self.matching_handlers(&hook, namespace).await?;
        Ok(handlers.iter().map(|handler| handler.name.clone()).collect())
    }

    /// Calls the handler `<handler>.<ExtensionConfig>` for an object in `namespace`.
    ///
    /// # Errors
    ///
    /// When the handler does not exist, is not for this hook or namespace, or does not succeed.
    pub async fn call<H: Hook>(
        &self,
        handler: &str,
        namespace: &str,
        request: &H::Request,
        options: CallOptions,
    ) -> Result<H::Response, HookCallError> {
        let hook = H::reference();
        let called = self.call_named::<Typed<H::Response>>(&hook, handler, namespace, request, options);
        Ok(called.await?.0)
    }

    /// Like [`Self::call`] with a JSON request and response, for hooks that are only known at run time.
    ///
    /// # Errors
    ///
    /// Those of [`Self::call`].
    pub async fn call_json(
        &self,
        hook: &HookReference,
        handler: &str,
        namespace: &str,
        request: Value,
        options: CallOptions,
    ) -> Result<Value, HookCallError> {
        let called = self.call_named::<Untyped>(hook, handler, namespace, &request, options);
        Ok(called.await?.0)
    }

    /// Returns the request that [`Self::call_json`] would send to a handler: in the handler's version, with
    /// the settings of its ExtensionConfig.
    ///
    /// # Errors
    ///
    /// When the hook is not in the catalog, or the request is not valid in the handler's version.
    pub fn request_json(
        &self,
        hook: &HookReference,
        handler: &RegisteredHandler,
        request: &Value,
    ) -> Result<Value, HookCallError> {
        let prepared = PreparedRequest::new(&self.catalog, self.definition(hook)?, request);
        let prepared = prepared.map_err(encoding_error(&handler.name))?;
        let sent = prepared
            .for_handler(handler)
            .map_err(|source| HookCallError::Handler {
                handler: handler.name.clone(),
                source,
            })?;
        serde_json::from_slice(&sent.body).map_err(encoding_error(&handler.name))
    }

    /// Calls all handlers of a hook for an object in `namespace` and combines their outcomes: success, the
    /// soonest retry, and all messages. Other fields of responses are dropped; use [`Self::call`] for them.
    /// Without handlers, the outcome is success.
    ///
    /// # Errors
    ///
    /// When a handler does not succeed; the handlers after it are not called.
    pub async fn call_all<H: Hook>(
        &self,
        namespace: &str,
        request: &H::Request,
        options: CallOptions,
    ) -> Result<H::Response, HookCallError> {
        let hook = H::reference();
        let definition = self.definition(&hook)?;
        let handlers = self.matching_handlers(&hook, namespace).await?;
        let mut response = H::Response::default();
        let Some(first) = handlers.first() else {
            return Ok(response);
        };
        let request = PreparedRequest::new(&self.catalog, definition, request);
        let request = &request.map_err(encoding_error(&first.name))?;
        let deadline = options.deadline();
        let beside = match options.order {
            CallOrder::Sequential => 1,
            CallOrder::Concurrent(most) => most.max(1),
        };
        // `buffered` keeps the order, so that messages are sorted by the names of handlers.
        let outcomes: Vec<HookOutcome> = stream::iter(&handlers)
            .map(async |handler| {
                let called = self.call_handler::<Typed<H::Response>>(request, handler, deadline, false);
                called.await.map(|Typed(response)| response.outcome())
            })
            .buffered(beside)
            .try_collect()
            .await?;
        response.set_outcome(HookOutcome::combine(outcomes));
        Ok(response)
    }

    fn definition(&self, hook: &HookReference) -> Result<&HookDefinition, HookCallError> {
        let known = self.catalog.get(hook);
        known.ok_or_else(|| HookCallError::UnknownHook(hook.clone()))
    }

    /// Returns the handlers of a hook that apply to objects of `namespace`.
    async fn matching_handlers(
        &self,
        hook: &HookReference,
        namespace: &str,
    ) -> Result<Vec<Arc<RegisteredHandler>>, HookCallError> {
        let mut labels = None;
        let mut selected = Vec::new();
        for handler in self.registry.list(hook)? {
            if self.is_selected(&handler, namespace, &mut labels).await? {
                selected.push(handler);
            }
        }
        Ok(selected)
    }

    /// Reports whether a handler applies to objects of `namespace`. `labels` caches the namespace's labels,
    /// which are read only if needed.
    async fn is_selected(
        &self,
        handler: &RegisteredHandler,
        namespace: &str,
        labels: &mut Option<Value>,
    ) -> Result<bool, HookCallError> {
        if handler.config.is_for_all_namespaces() {
            return Ok(true);
        }
        let known = match labels {
            Some(known) => known,
            None => {
                let read = self.namespaces.labels(namespace.to_owned()).await;
                labels.insert(read.map_err(|source| HookCallError::Namespace {
                    handler: handler.name.clone(),
                    source,
                })?)
            }
        };
        Ok(handler.config.is_for_namespace(known))
    }

    async fn call_named<R: ReadResponse>(
        &self,
        hook: &HookReference,
        handler: &str,
        namespace: &str,
        request: &impl Serialize,
        options: CallOptions,
    ) -> Result<R, HookCallError> {
        let definition = self.definition(hook)?;
        let registered = self.registry.get(handler)?;
        let registered = registered.ok_or_else(|| HookCallError::NotRegistered(handler.to_owned()))?;
        if !registered.hook.is_same_hook(hook) {
            return Err(HookCallError::OtherHook {
                handler: handler.to_owned(),
                answers: registered.hook.group_hook(),
                asked: hook.group_hook(),
            });
        }
        if !self.is_selected(&registered, namespace, &mut None).await? {
            return Err(HookCallError::OtherNamespace {
                handler: handler.to_owned(),
                namespace: namespace.to_owned(),
            });
        }
        let request = PreparedRequest::new(&self.catalog, definition, request);
        let request = request.map_err(encoding_error(handler))?;
        let deadline = options.deadline();
        self.call_handler(&request, &registered, deadline, options.cached)
            .await
    }

    /// Calls one handler and applies its failurePolicy.
    async fn call_handler<R: ReadResponse>(
        &self,
        request: &PreparedRequest<'_>,
        handler: &RegisteredHandler,
        deadline: Option<Instant>,
        cached: bool,
    ) -> Result<R, HookCallError> {
        let failed = match self.answer(request, handler, deadline, cached).await {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        if handler.failure_policy == FailurePolicy::Ignore && failed.is_ignorable() {
            self.metrics
                .count_ignored_failure(request.definition().reference(), handler);
            warn!(handler = handler.name, error = %failed, "Ignoring a failed call because of failurePolicy Ignore");
            return Ok(R::from_outcome(HookOutcome::default()));
        }
        Err(HookCallError::Handler {
            handler: handler.name.clone(),
            source: failed,
        })
    }

    /// Returns a successful response, possibly from the cache.
    async fn answer<R: ReadResponse>(
        &self,
        request: &PreparedRequest<'_>,
        handler: &RegisteredHandler,
        deadline: Option<Instant>,
        cached: bool,
    ) -> Result<R, HandlerError> {
        let HandlerRequest { body, conversion } = request.for_handler(handler)?;
        let key = match cached {
            true => Some(response_cache::key(
                handler,
                &request.with_settings(&handler.config.settings)?,
            )),
            false => None,
        };
        if let Some(known) = key.as_ref().and_then(|key| self.cache.get(key))
            && let Ok((response, _)) = read(&known, &conversion)
        {
            return Ok(response);
        }
        if self
            .catalog
            .get(&handler.hook)
            .is_some_and(|hook| hook.metadata().deprecated)
        {
            self.metrics
                .count_deprecated_request(request.definition().reference(), handler);
            debug!(handler = handler.name, hook = %handler.hook, "The handler answers a deprecated version");
        }
        let permit = self.circuits.admit(&handler.config.server);
        let permit = permit.map_err(HandlerError::CircuitOpen)?;
        let ends = Instant::now() + handler.timeout;
        let ends = deadline.map_or(ends, |deadline| deadline.min(ends));
        let answered = self.post(request.definition(), handler, body, ends).await;
        match &answered {
            Ok(_) => permit.report(true),
            Err(error) => match has_answered(error) {
                Some(answered) => permit.report(answered),
                None => drop(permit),
            },
        }
        let (answer, started) = answered?;
        let read = read::<R>(&answer, &conversion);
        let status = match &read {
            Ok((_, outcome)) => match outcome.status {
                ResponseStatus::Success => metrics::SUCCESS,
                ResponseStatus::Failure => "Failure",
                ResponseStatus::Unknown(_) => "Unknown",
            },
            Err(_) => "Unknown",
        };
        let counted = metrics::CallOutcome {
            code: Some(200),
            status,
            duration: started.elapsed(),
        };
        self.metrics
            .count_request(request.definition().reference(), handler, counted);
        let (response, outcome) = read?;
        match outcome.status {
            ResponseStatus::Success => {}
            ResponseStatus::Failure => return Err(HandlerError::Failure(outcome.message)),
            ResponseStatus::Unknown(status) => {
                return Err(HandlerError::UnknownStatus {
                    status,
                    message: outcome.message,
                });
            }
        }
        if let Some(key) = key {
            self.cache.insert(key, &answer);
        }
        Ok(response)
    }

    /// Sends a request, with retries if the hook is idempotent, until there is an answer or the time is over.
    /// Also returns when the answered request was sent.
    async fn post(
        &self,
        definition: &HookDefinition,
        handler: &RegisteredHandler,
        body: Bytes,
        ends: Instant,
    ) -> Result<(Bytes, Instant), HandlerError> {
        let mut retries = match definition.metadata().idempotent {
            true => self.retries,
            false => 0,
        };
        let mut failed = None;
        loop {
            let started = Instant::now();
            let left = ends.saturating_duration_since(started);
            if left.is_zero() {
                return Err(failed.map_or(HandlerError::OutOfBudget, HandlerError::from));
            }
            let path = with_timeout(handler.path(), left);
            let posted = self
                .transport
                .post(&handler.config.server, &path, body.clone(), left);
            let posted = posted.await;
            let code = metrics::code(&posted);
            let error = match posted {
                Ok(answer) => return Ok((answer, started)),
                Err(error) => error,
            };
            let counted = metrics::CallOutcome {
                code,
                status: "Unknown",
                duration: started.elapsed(),
            };
            self.metrics
                .count_request(definition.reference(), handler, counted);
            if retries == 0 || !error.is_transient() {
                return Err(error.into());
            }
            retries -= 1;
            failed = Some(error);
            tokio::time::sleep(RETRY_DELAY.min(ends.saturating_duration_since(Instant::now()))).await;
        }
    }
}

/// Wraps an encoding error of a request, attributed to the first handler.
fn encoding_error(handler: &str) -> impl FnOnce(serde_json::Error) -> HookCallError {
    let handler = handler.to_owned();
    move |error| HookCallError::Handler {
        handler,
        source: HandlerError::Encode(error),
    }
}

fn read<R: ReadResponse>(body: &[u8], conversion: &ConversionPath) -> Result<(R, HookOutcome), HandlerError> {
    if conversion.is_empty() {
        return R::read(body).map_err(HandlerError::Decode);
    }
    let value =
        go_json::first_value(body).map_err(|error| HandlerError::Decode(DecodeError::Syntax(error)))?;
    // A failure need not be a valid response in the handler's version.
    let outcome: HookOutcome = go_json::read_value(value.clone()).map_err(HandlerError::Decode)?;
    if outcome.status != ResponseStatus::Success {
        return Ok((R::from_outcome(outcome.clone()), outcome));
    }
    R::read_value(conversion.response(value)?).map_err(HandlerError::Decode)
}

/// Reports whether the server has answered, other than with a server error; [`None`] if it was not called.
fn has_answered(error: &HandlerError) -> Option<bool> {
    match error {
        HandlerError::OutOfBudget | HandlerError::Post(PostError::Trust(_) | PostError::Path(_)) => None,
        HandlerError::Post(PostError::Status { status, .. }) => Some(!status.is_server_error()),
        HandlerError::Post(_) => Some(false),
        _ => Some(true),
    }
}

impl<R: HookResponse> ReadResponse for Typed<R> {
    fn read(body: &[u8]) -> Result<(Self, HookOutcome), DecodeError> {
        let response: R = go_json::read(body)?;
        let outcome = response.outcome();
        Ok((Self(response), outcome))
    }

    fn read_value(value: Value) -> Result<(Self, HookOutcome), DecodeError> {
        let response: R = go_json::read_value(value)?;
        let outcome = response.outcome();
        Ok((Self(response), outcome))
    }

    fn from_outcome(outcome: HookOutcome) -> Self {
        let mut response = R::default();
        response.set_outcome(outcome);
        Self(response)
    }
}

impl ReadResponse for Untyped {
    fn read(body: &[u8]) -> Result<(Self, HookOutcome), DecodeError> {
        Self::read_value(go_json::first_value(body).map_err(DecodeError::Syntax)?)
    }

    fn read_value(value: Value) -> Result<(Self, HookOutcome), DecodeError> {
        let outcome = go_json::read_value(value.clone())?;
        Ok((Self(value), outcome))
    }

    fn from_outcome(outcome: HookOutcome) -> Self {
        Self(serde_json::json!({
            "status": outcome.status.to_string(), "message": outcome.message,
        }))
    }
}
