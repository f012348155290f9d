//! A server on any number of listeners, which ends without losing a request.

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

use super::{connection::ServedConnection, options::ServerOptions, seats::ConnectionSeats, tls::Encryption};

/// What answers requests: a `tower` service, as an `axum` router is. A response must have been read by the client within
/// [`ServerOptions::idle_timeout`].
pub trait WebhookService: Clone + Send + 'static {
    /// The bodies of its responses.
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;
    /// Why it has no response; the connection ends with that.
    type Error: Into<Box<dyn Error + Send + Sync>>;

    /// Answers one request. [`ConnectedClient`](super::ConnectedClient) is among its extensions.
    fn answer(
        self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Self::Error>> + Send + 'static;
}

/// A server on any number of listeners. Clones are one server.
#[derive(Clone, Debug)]
pub struct WebhookServer {
    pub(super) options: ServerOptions,
    /// Connections that have nothing to do are to be closed.
    pub(super) draining: CancellationToken,
    /// Nobody is accepted any more.
    closed: CancellationToken,
    /// Connections are dropped, whatever they do.
    aborted: CancellationToken,
    connections: TaskTracker,
    seats: Arc<ConnectionSeats>,
}

/// How long to wait where a connection cannot be accepted: most often there are too many.
const PAUSE: Duration = Duration::from_millis(50);

/// How many who wait to be accepted are still served at the end, as many as Tokio lets wait.
const WAITING: usize = 1024;

/// Serves until `shutdown` ends, then answers what is under way. Where the future is dropped before, connections are, too.
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

// === impl WebhookService ===

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

// === impl WebhookServer ===

impl WebhookServer {
    /// A server that does not listen yet.
    pub fn new(options: ServerOptions) -> Self {
        Self {
            seats: ConnectionSeats::new(options.connections),
            options,
            draining: CancellationToken::new(),
            closed: CancellationToken::new(),
            aborted: CancellationToken::new(),
            connections: TaskTracker::new(),
        }
    }

    /// Begins to serve on a listener, until [`Self::drain`].
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn listen<S: WebhookService>(&self, listener: TcpListener, encryption: Encryption, service: S) {
        self.connections
            .spawn(self.clone().accept(listener, encryption, service));
    }

    /// Answers what is under way, and closes each connection with that, or without a request.
    ///
    /// Without any linger the listeners and idle connections are closed first. With one they are closed after it, so that a client
    /// that still knows this address, or has a connection to it, is served rather than refused.
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
                "Dropping connections that do not end"
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
        // Those who are connected already, as far as the system is concerned.
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
        let seat = self.seats.take(address.ip());
        let connection = ServedConnection {
            server: self.clone(),
            address,
            accepted: Instant::now(),
            seat: seat.clone(),
        };
        let aborted = self.aborted.clone();
        self.connections.spawn(async move {
            let ended = tokio::select! {
                ended = connection.serve(stream, encryption, service) => ended,
                () = seat.lost() => Err(io::Error::other("closed for another").into()),
                () = aborted.cancelled() => Ok(()),
            };
            if let Err(error) = ended {
                tracing::debug!(%address, error, "Connection failed");
            }
        });
    }
}
