//! Connections: TLS, then HTTP/1.1, until shutdown.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};
use windlass_cluster::telemetry::chain;

/// How long a client may take for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long to wait where a connection cannot be accepted: most often there are too many.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown`; then until each connection has had its answer.
pub(super) async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    router: Router,
    shutdown: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let connections = TaskTracker::new();
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                connections.spawn(connection(stream, acceptor, router, shutdown.clone()));
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

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router, shutdown: CancellationToken) {
    let accepted = shutdown.run_until_cancelled(timeout(HANDSHAKE, acceptor.accept(stream)));
    let stream = match accepted.await {
        Some(Ok(Ok(stream))) => stream,
        // Somebody who looks at the certificate and goes.
        Some(Ok(Err(error))) => return debug!(error = chain(&error), "TLS handshake failed"),
        Some(Err(_)) | None => return,
    };
    let service = TowerToHyperService::new(router);
    let mut http = http1::Builder::new();
    // A connection without a request is kept: clients choose when to end it.
    http.timer(TokioTimer::new()).header_read_timeout(None);
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
