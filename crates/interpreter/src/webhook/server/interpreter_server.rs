//! A server of handlers.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    error::Error,
    fmt::{self, Display},
    future::Future,
    sync::{Arc, atomic::AtomicU64},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Body;
use thiserror::Error;
use tokio::{net::TcpListener, sync::Semaphore};
use tower::Service;
use webhook_transport::{
    is_url_path,
    server::{Encryption, ServerOptions, ServerTls, reply_text, serve},
};

use super::{
    endpoint::InterpreterEndpoint,
    handler::{AskingHandler, FunctionHandler, InterpreterCall, InterpreterHandler},
};
use crate::{Answer, Operation, ResourceInterpreter, webhook::ResourceInterpreterRequest};

/// A server of handlers for questions. It is a `tower` service and cheap to clone.
///
/// It also implements [`WebhookCaller`](crate::webhook::WebhookCaller), which calls this server without a
/// network.
#[derive(Clone)]
pub struct InterpreterServer {
    /// The endpoints by path.
    endpoints: Arc<BTreeMap<String, InterpreterEndpoint>>,
    concurrency: usize,
    /// The number of direct calls, for unique IDs.
    pub(super) asked: Arc<AtomicU64>,
}

/// Why a handler cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum AddInterpreterError {
    /// The path is invalid.
    #[error("path {0:?} must begin with /, and have no query or fragment")]
    Path(String),
    /// The operation has a handler at the path.
    #[error("{operation} at {path:?} already has a handler")]
    Duplicate { operation: Operation, path: String },
}

/// The default number of concurrent calls at a path.
const CONCURRENCY: usize = 64;

impl InterpreterServer {
    /// Creates a server without handlers.
    pub fn new() -> Self {
        Self {
            endpoints: Arc::default(),
            concurrency: CONCURRENCY,
            asked: Arc::default(),
        }
    }

    /// Limits concurrent calls at each path of the handlers that are added later. The bodies of waiting
    /// requests are not read.
    #[must_use]
    pub fn with_concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Adds a handler of operations at a path, which is that of `url` or `service` in its
    /// ResourceInterpreterWebhookConfiguration. If the answer is an object, the handler returns the whole
    /// object, and the difference is sent as a patch.
    ///
    /// The handler's future is dropped at the caller's timeout, at most 30 s, or else after 10 s. The call
    /// fails with status 504 then. Any other error becomes a response that reports a failure.
    ///
    /// # Errors
    ///
    /// When the path is invalid, or an operation already has a handler there.
    pub fn handle<F, E>(
        self,
        path: &str,
        operations: &[Operation],
        handler: impl Fn(ResourceInterpreterRequest<'static>, InterpreterCall) -> F + Send + Sync + 'static,
    ) -> Result<Self, AddInterpreterError>
    where
        F: Future<Output = Result<Answer, E>> + Send + 'static,
        E: Display,
    {
        self.add(
            path,
            operations,
            &(Arc::new(FunctionHandler(handler)) as Arc<dyn InterpreterHandler>),
        )
    }

    /// Adds `interpreter` as the handler of operations at a path: for example to serve customizations to
    /// Karmada.
    ///
    /// # Errors
    ///
    /// Those of [`Self::handle`].
    pub fn handle_with(
        self,
        path: &str,
        operations: &[Operation],
        interpreter: ResourceInterpreter,
    ) -> Result<Self, AddInterpreterError> {
        let handler = AskingHandler(Arc::new(interpreter));
        self.add(
            path,
            operations,
            &(Arc::new(handler) as Arc<dyn InterpreterHandler>),
        )
    }

    fn add(
        mut self,
        path: &str,
        operations: &[Operation],
        handler: &Arc<dyn InterpreterHandler>,
    ) -> Result<Self, AddInterpreterError> {
        if !is_url_path(path) {
            return Err(AddInterpreterError::Path(path.to_owned()));
        }
        let concurrency = self.concurrency;
        let endpoints = Arc::make_mut(&mut self.endpoints);
        let endpoint = endpoints
            .entry(path.to_owned())
            .or_insert_with(|| InterpreterEndpoint {
                path: path.into(),
                handlers: BTreeMap::new(),
                turns: Arc::new(Semaphore::new(concurrency)),
            });
        for operation in operations {
            if endpoint.handlers.contains_key(operation) {
                return Err(AddInterpreterError::Duplicate {
                    operation: *operation,
                    path: path.to_owned(),
                });
            }
            endpoint.handlers.insert(*operation, handler.clone());
        }
        Ok(self)
    }

    /// Answers a request; any error becomes a response.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        match self.endpoints.get(request.uri().path()) {
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
}

impl Default for InterpreterServer {
    fn default() -> Self {
        Self::new()
    }
}

impl<B> Service<Request<B>> for InterpreterServer
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

impl fmt::Debug for InterpreterServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations =
            |endpoint: &InterpreterEndpoint| endpoint.handlers.keys().copied().collect::<Vec<_>>();
        let endpoints = self.endpoints.iter();
        formatter
            .debug_map()
            .entries(endpoints.map(|(path, endpoint)| (path, operations(endpoint))))
            .finish()
    }
}
