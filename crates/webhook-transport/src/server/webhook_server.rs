//! A server on any number of listeners with graceful shutdown.

use std::{error::Error, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{
    Request, Response,
    body::{Body, Incoming},
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service;

use super::{
    connection::ServedConnection, connection_slots::ConnectionSlots, options::ServerOptions, tls::Encryption,
};

/// A service that answers requests, for example a `tower` service or an `axum` router. The client must have
/// read a response within [`ServerOptions::idle_timeout`].
pub trait WebhookService: Clone + Send + 'static {
    /// The type of response bodies.
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;
    /// Why there is no response; the connection is closed.
    type Error: Into<Box<dyn Error + Send + Sync>>;

    /// Answers one request. Its extensions have a [`ConnectedClient`](super::ConnectedClient).
    fn answer(
        self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Self::Error>> + Send + 'static;
}

/// A server on any number of listeners. Clones share its state.
#[derive(Clone, Debug)]
pub struct WebhookServer {
    pub(super) options: ServerOptions,
    /// Cancelled when idle connections have to close.
    pub(super) draining: CancellationToken,
    /// Cancelled when listeners have to close.
    closed: CancellationToken,
    /// Cancelled when all connections have to be dropped.
    aborted: CancellationToken,
    connections: TaskTracker,
    slots: Arc<ConnectionSlots>,
}

/// How long to wait after a connection cannot be accepted, usually because too many are open.
const PAUSE: Duration = Duration::from_millis(50);

/// How many pending connections are still accepted at shutdown: the backlog that Tokio sets.
const WAITING: usize = 1024;

/// Serves until `shutdown` completes, then finishes active requests. Dropping the future drops all
/// connections.
pub async fn serve<S: WebhookService>(
    listener: TcpListener,
    encryption: Encryption,
    service: S,
    options: ServerOptions,
    shutdown: impl Future<Output = ()>,
) {
    let server = WebhookServer::new(options);
    let _dropped = [
        server.closed.clone().drop_guard(),
        server.aborted.clone().drop_guard(),
    ];
    server.listen(listener, encryption, service);
    shutdown.await;
    server.drain().await;
}

impl<S, B> WebhookService for S
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    type Body = B;
    type Error = S::Error;

    fn answer(
        self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<B>, S::Error>> + Send + 'static {
        tower::ServiceExt::oneshot(self, request)
    }
}

impl WebhookServer {
    /// Creates a server without listeners.
    pub fn new(options: ServerOptions) -> Self {
        Self {
            slots: ConnectionSlots::new(options.connections),
            options,
            draining: CancellationToken::new(),
            closed: CancellationToken::new(),
            aborted: CancellationToken::new(),
            connections: TaskTracker::new(),
        }
    }

    /// Serves on a listener until [`Self::drain`].
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn listen<S: WebhookService>(&self, listener: TcpListener, encryption: Encryption, service: S) {
        self.connections
            .spawn(self.clone().accept(listener, encryption, service));
    }

    /// Finishes active requests and closes all connections.
    ///
    /// Without a linger time, listeners and idle connections are closed first. With one, they are closed
    /// after it, so that clients that still use this address or an open connection are served instead of
    /// refused.
    pub async fn drain(&self) {
        let ServerOptions {
            linger,
            drain_timeout,
            ..
        } = self.options;
        if linger.is_zero() {
            self.closed.cancel();
        }
        self.draining.cancel();
        tokio::time::sleep(linger).await;
        self.closed.cancel();
        self.connections.close();
        let ended = self.connections.wait();
        let Some(limit) = drain_timeout else {
            return ended.await;
        };
        if timeout(limit, ended).await.is_err() {
            tracing::warn!(
                connections = self.connections.len(),
                "Dropping connections that are still open"
            );
            self.aborted.cancel();
            self.connections.wait().await;
        }
    }

    async fn accept<S: WebhookService>(self, listener: TcpListener, encryption: Encryption, service: S) {
        let closed = self.closed.clone();
        let connect =
            move |(stream, address)| self.connect(stream, address, encryption.clone(), service.clone());
        while let Some(accepted) = closed.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok(accepted) => connect(accepted),
                Err(error) => {
                    tracing::warn!(%error, "Cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        // These clients are already connected from the operating system's point of view.
        for _ in 0..WAITING {
            match timeout(Duration::ZERO, listener.accept()).await {
                Ok(Ok(accepted)) => connect(accepted),
                _ => return,
            }
        }
    }

    fn connect<S: WebhookService>(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        encryption: Encryption,
        service: S,
    ) {
        let slot = self.slots.take(address.ip());
        let connection = ServedConnection {
            server: self.clone(),
            address,
            accepted: Instant::now(),
            slot: slot.clone(),
        };
        let aborted = self.aborted.clone();
        self.connections.spawn(async move {
            let ended = tokio::select! {
                ended = connection.serve(stream, encryption, service) => ended,
                () = slot.wait_for_eviction() => Err(io::Error::other("closed to make room for another connection").into()),
                () = aborted.cancelled() => Ok(()),
            };
            if let Err(error) = ended {
                tracing::debug!(%address, error, "Connection failed");
            }
        });
    }
}
