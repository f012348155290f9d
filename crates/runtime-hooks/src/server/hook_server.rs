//! A server of handlers.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    convert::Infallible,
    error::Error,
    fmt,
    future::Future,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpListener;
use tower::Service;
use tracing::warn;
use webhook_transport::server::{Encryption, ServerOptions, ServerTls, reply_text, serve};
use windlass_object::rfc1123::is_label;

use super::{
    answer::HookEndpoint,
    handler::{AnyHandler, CallContext, HandlerFunction, IntoHookResponse, JsonHandler},
    options::{HandlerOptions, LONGEST_TIMEOUT},
};
use crate::{
    Catalog, Hook, HookReference,
    catalog::HookDefinition,
    cluster_api::{Discovery, DiscoveryRequest, DiscoveryResponse, HandlerInfo, RequestHook},
    hook::join,
};

/// A server of handlers for hooks. It is a `tower` service and cheap to clone.
#[derive(Clone)]
pub struct HookServer {
    catalog: Arc<Catalog>,
    /// The prefix of all paths.
    prefix: Arc<str>,
    /// The handlers by name.
    handlers: Arc<BTreeMap<String, HandlerInfo>>,
    /// The endpoints by path, below the prefix.
    endpoints: Arc<BTreeMap<String, Arc<HookEndpoint>>>,
}

/// Why a handler cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddHandlerError {
    /// The hook is not in the catalog.
    #[error("{0} is not registered")]
    UnknownHook(HookReference),
    /// The server answers Discovery itself.
    #[error("Discovery is answered by the server itself")]
    Discovery,
    /// The name is not a DNS label; it becomes part of a path and of the full name.
    #[error("name {0:?} must be a DNS label")]
    Name(String),
    /// The name is in use, for this or another hook.
    #[error("duplicate name {0:?}")]
    DuplicateName(String),
    /// The hook is a singleton and has a handler.
    #[error("{0} already has a handler")]
    Singleton(HookReference),
    /// The timeout is out of range.
    #[error("timeoutSeconds must be 0 to {LONGEST_TIMEOUT}, not {0}")]
    Timeout(
        /// The timeout in seconds.
        i32,
    ),
}

impl HookServer {
    /// Creates a server without handlers for the hooks of `catalog`.
    pub fn new(catalog: Catalog) -> Self {
        Self {
            catalog: Arc::new(catalog),
            prefix: Arc::default(),
            handlers: Arc::default(),
            endpoints: Arc::new(BTreeMap::from([(
                Discovery::reference().path(),
                Arc::new(discovery(Vec::new())),
            )])),
        }
    }

    /// Sets a prefix of all paths: `service.path` or the path of `url` in the ExtensionConfig. Not needed
    /// below a router that strips the prefix, as that of `axum` does.
    #[must_use]
    pub fn with_path_prefix(mut self, path: &str) -> Self {
        self.prefix = join(path, "").trim_end_matches('/').into();
        self
    }

    /// Adds a handler of a hook. Its name is a DNS label that is unique in the server.
    ///
    /// The handler's future is dropped at the caller's timeout, at most 30 s, or else at the handler's own.
    /// The call fails with status 504 then, so that its `failurePolicy` applies. Any other error becomes a
    /// response that reports a failure.
    ///
    /// # Errors
    ///
    /// When the catalog does not have the hook, or the name or timeout is invalid.
    pub fn handle<H: Hook, F>(
        self,
        name: &str,
        options: HandlerOptions,
        handler: impl Fn(H::Request, CallContext) -> F + Send + Sync + 'static,
    ) -> Result<Self, AddHandlerError>
    where
        F: Future<Output: IntoHookResponse<H>> + Send + 'static,
    {
        self.add(&H::reference(), name, &options, |_| {
            HandlerFunction::<H, _>::new(handler)
        })
    }

    /// Adds a handler of a hook that is only known at run time. Requests are validated as for a type; the
    /// returned response or error is encoded unchanged.
    ///
    /// # Errors
    ///
    /// Those of [`Self::handle`].
    pub fn handle_json<F>(
        self,
        hook: &HookReference,
        name: &str,
        options: HandlerOptions,
        handler: impl Fn(Value, CallContext) -> F + Send + Sync + 'static,
    ) -> Result<Self, AddHandlerError>
    where
        F: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.add(hook, name, &options, |definition| {
            JsonHandler::new(definition, handler)
        })
    }

    fn add<A: AnyHandler + 'static>(
        mut self,
        hook: &HookReference,
        name: &str,
        options: &HandlerOptions,
        handler: impl FnOnce(&HookDefinition) -> A,
    ) -> Result<Self, AddHandlerError> {
        let definition = self.check(hook, name, options)?;
        let metadata = definition.metadata();
        let is_singleton = metadata.singleton;
        if metadata.deprecated {
            warn!(%hook, handler = name, "A handler answers a deprecated version of its hook");
        }
        let endpoint = Arc::new(HookEndpoint::new(
            hook.clone(),
            name,
            options,
            handler(definition),
        ));
        let endpoints = Arc::make_mut(&mut self.endpoints);
        if is_singleton {
            match endpoints.entry(hook.path()) {
                Entry::Vacant(path) => path.insert(endpoint.clone()),
                Entry::Occupied(_) => return Err(AddHandlerError::Singleton(hook.clone())),
            };
        }
        endpoints.insert(hook.handler_path(name), endpoint);
        let info = HandlerInfo {
            name: name.to_owned(),
            request_hook: RequestHook {
                api_version: hook.api_version.clone(),
                hook: hook.hook.clone(),
            },
            timeout_seconds: options.timeout_seconds,
            failure_policy: options.failure_policy.map(|policy| policy.as_str().to_owned()),
        };
        let handlers = Arc::make_mut(&mut self.handlers);
        handlers.insert(name.to_owned(), info);
        let handlers = handlers.values().cloned().collect();
        endpoints.insert(Discovery::reference().path(), Arc::new(discovery(handlers)));
        Ok(self)
    }

    /// Answers a request; any error becomes a response.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        let path = request.uri().path().strip_prefix(&*self.prefix);
        match path.and_then(|path| self.endpoints.get(path)) {
            Some(endpoint) => endpoint.answer(request).await,
            None => reply_text(StatusCode::NOT_FOUND, "not found"),
        }
    }

    /// Serves over TLS until `shutdown` completes, then finishes active requests.
    pub async fn serve(
        self,
        listener: TcpListener,
        tls: ServerTls,
        options: ServerOptions,
        shutdown: impl Future<Output = ()>,
    ) {
        serve(listener, Encryption::Tls(tls), self, options, shutdown).await;
    }

    /// Returns the path of a handler; that of a singleton has no name.
    pub(super) fn path<H: Hook>(&self, handler: &str) -> String {
        let hook = H::reference();
        let path = if H::METADATA.singleton {
            hook.path()
        } else {
            hook.handler_path(handler)
        };
        format!("{}{path}", self.prefix)
    }

    fn check(
        &self,
        hook: &HookReference,
        name: &str,
        options: &HandlerOptions,
    ) -> Result<&HookDefinition, AddHandlerError> {
        if hook.is_same_hook(&Discovery::reference()) {
            return Err(AddHandlerError::Discovery);
        }
        let definition = self.catalog.get(hook);
        let definition = definition.ok_or_else(|| AddHandlerError::UnknownHook(hook.clone()))?;
        if !is_label(name) {
            return Err(AddHandlerError::Name(name.to_owned()));
        }
        if self.handlers.contains_key(name) {
            return Err(AddHandlerError::DuplicateName(name.to_owned()));
        }
        match options.timeout_seconds {
            Some(seconds) if !(0..=i32::from(LONGEST_TIMEOUT)).contains(&seconds) => {
                Err(AddHandlerError::Timeout(seconds))
            }
            _ => Ok(definition),
        }
    }
}

impl<B> Service<Request<B>> for HookServer
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        async move { Ok(server.answer(request).await) }.boxed()
    }
}

impl fmt::Debug for HookServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HookServer")
            .field("prefix", &self.prefix)
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}

/// Creates the endpoint of Discovery, which lists the handlers in the order of their names.
fn discovery(handlers: Vec<HandlerInfo>) -> HookEndpoint {
    let answer = move |_: DiscoveryRequest, _: CallContext| {
        let response = DiscoveryResponse {
            handlers: handlers.clone(),
            ..DiscoveryResponse::default()
        };
        std::future::ready(response)
    };
    HookEndpoint::new(
        Discovery::reference(),
        "",
        &HandlerOptions::default(),
        HandlerFunction::<Discovery, _>::new(answer),
    )
}
