//! Serving connections: TLS where a port has that, then HTTP/1.1, until shutdown.

use std::{net::IpAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, extract::Request};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};
use webhook_transport::server::{ConnectionSeats, Seat};
use windlass_cluster::telemetry::chain;

/// The address that a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub IpAddr);

/// How many connections to a port there are at most.
pub(crate) const CONNECTIONS: usize = 256;

/// How long a client may take for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a client may take until the head of its next request is there. API servers and kubelets, as most clients of Go,
/// give up idle connections after 90 seconds, so that it is not in the moment of a request that this side does.
const IDLE: Duration = Duration::from_secs(120);

/// How long to wait where a connection cannot be accepted: most often there are too many.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown`, over TLS if there is a configuration for it; then until each connection has had its answer.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    router: Router,
    shutdown: CancellationToken,
) {
    let acceptor = tls.map(|tls| TlsAcceptor::from(Arc::new(tls)));
    let connections = TaskTracker::new();
    let seats = ConnectionSeats::new(CONNECTIONS);
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, peer)) => {
                let (acceptor, router, shutdown) = (acceptor.clone(), router.clone(), shutdown.clone());
                let seat = seats.take(peer.ip());
                connections.spawn(async move {
                    tokio::select! {
                        () = connection(stream, peer.ip(), &seat, acceptor, router, shutdown) => {}
                        () = seat.lost() => debug!(%peer, "Closed a connection for another"),
                    }
                });
            }
            Err(error) => {
                warn!(error = chain(&error), "Cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn connection(
    stream: TcpStream,
    client: IpAddr,
    seat: &Arc<Seat>,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    shutdown: CancellationToken,
) {
    let Some(acceptor) = acceptor else {
        return answer(stream, client, seat, router, shutdown).await;
    };
    let accepted = shutdown.run_until_cancelled(timeout(HANDSHAKE, acceptor.accept(stream)));
    match accepted.await {
        Some(Ok(Ok(stream))) => answer(stream, client, seat, router, shutdown).await,
        // Somebody who looks at the certificate and goes.
        Some(Ok(Err(error))) => debug!(error = chain(&error), "TLS handshake failed"),
        Some(Err(_)) | None => {}
    }
}

/// Answers one request after the other.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    client: IpAddr,
    seat: &Arc<Seat>,
    router: Router,
    shutdown: CancellationToken,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        let occupied = seat.occupy();
        request.extensions_mut().insert(ClientAddress(client));
        let answer = router.call(request);
        async move {
            let answer = answer.await;
            drop(occupied);
            answer
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(IDLE);
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = shutdown.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        debug!(error = chain(&error), "Connection failed");
    }
}
