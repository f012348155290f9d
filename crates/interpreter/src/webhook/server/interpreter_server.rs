//! The handlers of a server, and which of them is asked.

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
    is_path,
    server::{Encryption, ServerOptions, ServerTls, reply_text, serve},
};

use super::{
    endpoint::InterpreterEndpoint,
    handler::{AskingHandler, FunctionHandler, InterpreterCall, InterpreterHandler},
};
use crate::{Answer, Operation, ResourceInterpreter, webhook::ResourceInterpreterRequest};

/// Answers questions by handlers. It is a `tower` service, of which clones are cheap.
///
/// It is a [`WebhookCaller`](crate::webhook::WebhookCaller), too, which asks itself without a network.
#[derive(Clone)]
pub struct InterpreterServer {
    /// By path.
    endpoints: Arc<BTreeMap<String, InterpreterEndpoint>>,
    concurrency: usize,
    /// How often it has asked itself.
    pub(super) asked: Arc<AtomicU64>,
}

/// Why a handler is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddInterpreterError {
    /// Nobody could ask there.
    #[error("path {0:?} must begin with /, and have no query or fragment")]
    Path(
        /// The path.
        String,
    ),
    /// Another handler answers that.
    #[error("{operation} at {path:?} is answered by another handler")]
    Duplicate {
        /// What it answers.
        operation: Operation,
        /// Where.
        path: String,
    },
}

/// How many calls are under way at a path at a time.
const CONCURRENCY: usize = 64;

// === impl InterpreterServer ===

impl InterpreterServer {
    /// Without any handler.
    pub fn new() -> Self {
        Self {
            endpoints: Arc::default(),
            concurrency: CONCURRENCY,
            asked: Arc::default(),
        }
    }

    /// Has at most so many calls under way at each path of the handlers that follow. Others wait, and their bodies are not read
    /// meanwhile.
    #[must_use]
    pub fn with_concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Has `handler` answer operations at a path, which is that of `url` or `service` in its ResourceInterpreterWebhookConfiguration.
    /// Where an object is to be answered it answers the whole of it; what differs is sent as a patch.
    ///
    /// The handler is dropped where it stands once its caller has given up: after the `timeout` that the caller names, at most 30 s,
    /// else after 10 s. The call has failed then (504). Whatever else goes wrong is a response that says so.
    ///
    /// # Errors
    ///
    /// When the path is none, or another handler answers one of the operations there.
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

    /// Has `interpreter` answer operations at a path: customizations for a Karmada that knows nothing of them, say.
    ///
    /// # Errors
    ///
    /// As [`Self::handle`].
    pub fn handle_by(
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
        if !is_path(path) {
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

    /// Answers one request, whatever it is.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        match self.endpoints.get(request.uri().path()) {
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
