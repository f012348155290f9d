//! One connection: detects TLS, then serves requests until it is idle.

use std::{
    error::Error,
    future::Future,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use hyper::{
    Request, Version,
    body::Incoming,
    header::{CONNECTION, HeaderValue},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use rustls::pki_types::CertificateDer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout},
};

use super::{
    activity::Activity,
    connection_slots::ConnectionSlot,
    tls::{Encryption, HTTP2},
    webhook_server::{WebhookServer, WebhookService},
};

/// The client of a request; stored in the extensions of each request.
#[derive(Clone, Debug)]
pub struct ConnectedClient {
    /// The remote address.
    pub address: SocketAddr,
    /// The client's certificate chain; empty if it sent none or none was requested.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

pub(super) struct ServedConnection {
    pub(super) server: WebhookServer,
    pub(super) address: SocketAddr,
    pub(super) accepted: Instant,
    pub(super) slot: Arc<ConnectionSlot>,
}

type Failure = Box<dyn Error + Send + Sync>;

/// The first byte of a TLS handshake record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;

/// How long a connection without a request counts as busy, as in `Server.Shutdown` of Go's `net/http`.
const NEW: Duration = Duration::from_secs(5);

/// How long an idle client may take to close its connection.
const LEAVING: Duration = Duration::from_secs(1);

/// The maximum number of concurrent requests on one connection.
const STREAMS: u32 = 100;

impl ServedConnection {
    pub(super) async fn serve<S: WebhookService>(
        self,
        stream: TcpStream,
        encryption: Encryption,
        service: S,
    ) -> Result<(), Failure> {
        stream.set_nodelay(true)?;
        let patience = self.server.options.handshake_timeout;
        let (mut first, nothing) = ([0], Activity::new());
        let opened = tokio::select! {
            opened = timeout(patience, stream.peek(&mut first)) => opened??,
            () = self.linger(&nothing) => 0,
        };
        if opened == 0 {
            return Ok(());
        }
        let tls = match encryption {
            Encryption::TlsOrPlain(_) if first[0] != HANDSHAKE => {
                let client = self.client(&[]);
                return self.answer(stream, client, service, false).await;
            }
            Encryption::Tls(tls) | Encryption::TlsOrPlain(Some(tls)) => tls,
            Encryption::TlsOrPlain(None) => {
                return Err(
                    io::Error::other("a client started TLS, but there is no certificate to serve").into(),
                );
            }
        };
        let acceptor = tls.acceptor().ok_or("TLS is not configured")?;
        let stream = timeout(patience, acceptor.accept(stream)).await??;
        let (_, session) = stream.get_ref();
        let client = self.client(session.peer_certificates().unwrap_or_default());
        let is_http2 = session.alpn_protocol() == Some(HTTP2);
        self.answer(stream, client, service, is_http2).await
    }

    fn client(&self, certificates: &[CertificateDer<'static>]) -> ConnectedClient {
        ConnectedClient {
            address: self.address,
            certificates: certificates.into(),
        }
    }

    async fn answer<S: WebhookService>(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        client: ConnectedClient,
        service: S,
        is_http2: bool,
    ) -> Result<(), Failure> {
        let activity = Activity::new();
        let (slot, draining) = (self.slot.clone(), self.server.draining.clone());
        let counted = activity.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let under_way = (counted.begin(), slot.begin_request());
            let can_close = request.version() < Version::HTTP_2;
            let draining = draining.clone();
            request.extensions_mut().insert(client.clone());
            let answer = service.clone().answer(request);
            async move {
                let mut answer = answer.await?;
                if can_close && draining.is_cancelled() {
                    let headers = answer.headers_mut();
                    headers.insert(CONNECTION, HeaderValue::from_static("close"));
                }
                drop(under_way);
                Ok::<_, S::Error>(answer)
            }
        });
        let http = http(is_http2);
        let connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        self.serve_until_idle(connection, &activity, auto::Connection::graceful_shutdown)
            .await
    }

    /// Serves until the client closes the connection or it was idle for too long.
    async fn serve_until_idle<C: Future<Output = Result<(), Failure>>>(
        &self,
        mut connection: Pin<&mut C>,
        activity: &Activity,
        close: fn(Pin<&mut C>),
    ) -> Result<(), Failure> {
        let options = &self.server.options;
        let leaving = tokio::select! {
            // Handles a request that has already arrived before closing the connection.
            biased;
            ended = connection.as_mut() => return ended,
            () = self.linger(activity) => None,
            () = activity.wait_until_idle(options.header_timeout, options.idle_timeout) => Some(LEAVING),
        };
        close(connection.as_mut());
        tokio::select! {
            ended = connection => ended,
            () = activity.wait_until_idle(leaving, leaving) => Err(io::Error::other("idle for too long").into()),
        }
    }

    /// Waits until a connection without an active request has to be closed.
    async fn linger(&self, activity: &Activity) {
        self.server.draining.cancelled().await;
        tokio::time::sleep(self.server.options.linger).await;
        if !activity.has_had_request() {
            tokio::time::sleep_until(self.accepted + NEW).await;
        }
    }
}

fn http(is_http2: bool) -> auto::Builder<TokioExecutor> {
    let http = auto::Builder::new(TokioExecutor::new());
    if is_http2 {
        let mut http = http.http2_only();
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS);
        http
    } else {
        let mut http = http.http1_only();
        // The idle timeouts are the same for both versions, in `ServerOptions`.
        http.http1().timer(TokioTimer::new()).header_read_timeout(None);
        http
    }
}
