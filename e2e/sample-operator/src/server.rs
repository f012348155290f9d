//! Connections: accepted on every port, TLS or plain by their first byte, drained at the end.

use std::{
    io,
    net::IpAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    header::{CONNECTION, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{certificate::ServedCertificate, service::Service};

/// The first byte of a TLS handshake record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection counts as busy that has not brought a request yet, as `Server.Shutdown` of Go's `net/http` has it.
const NEW: Duration = Duration::from_secs(5);

/// A server on any number of ports.
#[derive(Clone, Debug)]
pub(crate) struct WebhookServer {
    service: Arc<Service>,
    certificate: Option<ServedCertificate>,
    /// How long ports and idle connections stay when the server is told to end. Clients that keep connections, as
    /// kube-apiserver does, may be sending on one just then, and a POST that finds it closed is not sent again.
    linger: Duration,
    draining: CancellationToken,
    closed: CancellationToken,
    connections: TaskTracker,
}

// === impl WebhookServer ===

impl WebhookServer {
    /// A server that does not listen yet.
    pub(crate) fn new(
        service: Arc<Service>,
        certificate: Option<ServedCertificate>,
        linger: Duration,
    ) -> Self {
        Self {
            service,
            certificate,
            linger,
            draining: CancellationToken::new(),
            closed: CancellationToken::new(),
            connections: TaskTracker::new(),
        }
    }

    /// Opens one port.
    pub(crate) async fn listen(&self, address: IpAddr, port: u16) -> anyhow::Result<()> {
        let listener = TcpListener::bind((address, port)).await?;
        let tls = match &self.certificate {
            Some(certificate) => Some(TlsAcceptor::from(Arc::new(certificate.tls()?))),
            None => None,
        };
        let server = self.clone();
        tokio::spawn(self.closed.clone().run_until_cancelled_owned(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        server
                            .connections
                            .spawn(server.clone().connection(stream, tls.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "Cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }));
        Ok(())
    }

    /// Answers what is under way, and closes each connection with that, or without a request.
    ///
    /// Without any linger the ports and idle connections are closed first, as a server of controller-runtime does. With
    /// one, a client that still knows this address is served rather than refused.
    pub(crate) async fn drain(&self) {
        if self.linger.is_zero() {
            self.closed.cancel();
        }
        self.draining.cancel();
        self.connections.close();
        self.connections.wait().await;
        self.closed.cancel();
    }

    async fn connection(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        if let Err(error) = self.serve(stream, tls).await {
            tracing::debug!(error = %format!("{error:#}"), "Connection failed");
        }
    }

    async fn serve(&self, stream: TcpStream, tls: Option<TlsAcceptor>) -> anyhow::Result<()> {
        stream.set_nodelay(true)?;
        let accepted = Instant::now();
        let asked = AtomicBool::new(false);
        let mut first = [0];
        let opened = tokio::select! {
            opened = timeout(PATIENCE, stream.peek(&mut first)) => opened??,
            () = self.lingered(accepted, &asked) => return Ok(()),
        };
        if opened == 0 {
            return Ok(());
        }
        if first[0] != HANDSHAKE {
            return self.answer(stream, accepted).await;
        }
        let tls = tls.ok_or_else(|| io::Error::other("a TLS client, and no certificate to serve"))?;
        let stream = timeout(PATIENCE, tls.accept(stream)).await??;
        self.answer(stream, accepted).await
    }

    async fn answer(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        accepted: Instant,
    ) -> anyhow::Result<()> {
        let asked = AtomicBool::new(false);
        let service = service_fn(
            async |request: Request<Incoming>| -> Result<Response<Full<Bytes>>, hyper::Error> {
                asked.store(true, Ordering::Relaxed);
                let mut response = self.service.answer(request).await?;
                if self.draining.is_cancelled() {
                    let headers = response.headers_mut();
                    headers.insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok(response)
            },
        );
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(None);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            // A request that has come is seen before the connection is closed.
            biased;
            ended = connection.as_mut() => return Ok(ended?),
            () = self.lingered(accepted, &asked) => connection.as_mut().graceful_shutdown(),
        }
        Ok(connection.await?)
    }

    /// Ends when a connection without a request is to be closed.
    async fn lingered(&self, accepted: Instant, asked: &AtomicBool) {
        self.draining.cancelled().await;
        tokio::time::sleep(self.linger).await;
        if !asked.load(Ordering::Relaxed) {
            tokio::time::sleep_until(accepted + NEW).await;
        }
    }
}
