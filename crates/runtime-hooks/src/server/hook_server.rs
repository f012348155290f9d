//! The handlers of a server, and which of them is asked.

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

/// Answers hooks by handlers. It is a `tower` service, of which clones are cheap.
#[derive(Clone)]
pub struct HookServer {
    catalog: Arc<Catalog>,
    /// Before all paths.
    prefix: Arc<str>,
    /// By name.
    handlers: Arc<BTreeMap<String, HandlerInfo>>,
    /// By path, behind the prefix.
    endpoints: Arc<BTreeMap<String, Arc<HookEndpoint>>>,
}

/// Why a handler is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddHandlerError {
    /// Nobody knows the hook.
    #[error("{0} is not registered")]
    UnknownHook(
        /// The hook.
        HookReference,
    ),
    /// Which hooks are answered is said by the server itself.
    #[error("Discovery is answered by the server itself")]
    Discovery,
    /// The name becomes a part of a path and of another name.
    #[error("name {0:?} must be a DNS label")]
    Name(
        /// The name.
        String,
    ),
    /// Another handler, of whichever hook, has the name.
    #[error("duplicate name {0:?}")]
    DuplicateName(
        /// The name.
        String,
    ),
    /// A server answers the hook once, and another handler does.
    #[error("{0} is answered by another handler")]
    Singleton(
        /// The hook.
        HookReference,
    ),
    /// Nobody waits so long.
    #[error("timeoutSeconds must be 0 to {LONGEST_TIMEOUT}, not {0}")]
    Timeout(
        /// What was to be waited for.
        i32,
    ),
}

// === impl HookServer ===

impl HookServer {
    /// Without any handler, for hooks of `catalog`.
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

    /// Answers below `path`, which is `service.path` or the path of `url` in its ExtensionConfig. Not to be said where a router
    /// takes that path off, as one of `axum` does.
    #[must_use]
    pub fn below(mut self, path: &str) -> Self {
        self.prefix = join(path, "").trim_end_matches('/').into();
        self
    }

    /// Has `handler` answer a hook. Its name is a DNS label that no other handler of the server has.
    ///
    /// The handler is dropped where it stands once its caller has given up: after the `timeout` that the caller names, at most 30 s,
    /// else after its own. The call has failed then (504), so that its `failurePolicy` counts. Whatever else goes wrong is a response
    /// that says so.
    ///
    /// # Errors
    ///
    /// When the catalog does not know the hook, or the name or timeout is not as it must be.
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

    /// The same for a hook that is only known when the program runs. Requests are checked as those of its type are; what the handler
    /// returns, or why there is nothing, goes out as it is.
    ///
    /// # Errors
    ///
    /// As [`Self::handle`].
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

    /// Answers one request, whatever it is.
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

    /// Serves over TLS until `shutdown` ends, then answers what is under way.
    pub async fn serve(
        self,
        listener: TcpListener,
        tls: ServerTls,
        options: ServerOptions,
        shutdown: impl Future<Output = ()>,
    ) {
        serve(listener, Encryption::Tls(tls), self, options, shutdown).await;
    }

    /// Where a handler is asked; where `H` is answered once, that has no name.
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

/// Says which handlers there are: by name, so that it is the same each time.
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
