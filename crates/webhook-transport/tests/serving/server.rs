//! A server on the loopback interface and clients for it.

use std::{convert::Infallible, io, net::Ipv4Addr, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, pki_types::ServerName};
use tempfile::TempDir;
use test_authority::TestAuthority;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower::service_fn;
use webhook_transport::{
    CertificateFiles, LiveCertificate,
    server::{ConnectedClient, Encryption, HttpVersions, ServerOptions, ServerTls, serve},
};

use crate::client::{NAME, client};

/// Timeout for something that is certain to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How often files are reloaded.
pub(crate) const PERIOD: Duration = Duration::from_millis(10);

/// How long a request takes at `/slow`.
pub(crate) const SLOW: Duration = Duration::from_millis(400);

/// The ALPN name of HTTP/1.1.
pub(crate) const HTTP1: &str = "http/1.1";

/// The ALPN name of HTTP/2.
pub(crate) const HTTP2: &str = "h2";

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) task: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

/// One connection of a client.
pub(crate) enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// The TLS files of a server, in a folder.
pub(crate) struct Served {
    pub(crate) authority: TestAuthority,
    pub(crate) folder: TempDir,
}

impl Served {
    pub(crate) fn new() -> Self {
        let (authority, folder) = (TestAuthority::new("first"), TempDir::new().unwrap());
        authority.server(&[NAME]).mount(folder.path(), 1);
        Self { authority, folder }
    }

    pub(crate) fn certificate(&self) -> LiveCertificate {
        let files = CertificateFiles::in_folder(self.folder.path());
        LiveCertificate::follow(files, PERIOD).unwrap()
    }

    pub(crate) fn tls(&self) -> ServerTls {
        ServerTls::new(self.certificate(), HttpVersions::Http1And2).unwrap()
    }

    /// A client that trusts the first CA and uses one version of HTTP.
    pub(crate) fn client(&self, version: &str) -> Arc<ClientConfig> {
        client(&[&self.authority], None, &[version])
    }
}

impl Server {
    pub(crate) async fn start(tls: ServerTls, options: ServerOptions) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let task = tokio::spawn(serve(
            listener,
            Encryption::Tls(tls),
            service_fn(answer),
            options,
            stopped,
        ));
        Self {
            address,
            task,
            stop: Some(stop),
        }
    }

    pub(crate) fn start_shutdown(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn wait_for_end(self) {
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
    }

    pub(crate) async fn stop(mut self) {
        self.start_shutdown();
        self.wait_for_end().await;
    }

    pub(crate) async fn handshake(&self, client: &Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        TlsConnector::from(client.clone())
            .connect(ServerName::try_from(NAME).unwrap(), stream)
            .await
    }

    pub(crate) async fn connect(&self, client: &Arc<ClientConfig>) -> io::Result<Sender> {
        Sender::from_stream(self.handshake(client).await?).await
    }
}

impl Sender {
    async fn from_stream(stream: TlsStream<TcpStream>) -> io::Result<Self> {
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2.as_bytes());
        let stream = TokioIo::new(stream);
        if is_http2 {
            let connected = http2::handshake(TokioExecutor::new(), stream).await;
            let (sender, connection) = connected.map_err(io::Error::other)?;
            tokio::spawn(connection);
            Ok(Self::Http2(sender))
        } else {
            let (sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
            tokio::spawn(connection);
            Ok(Self::Http1(sender))
        }
    }

    pub(crate) async fn ask(&mut self, path: &str) -> Result<(StatusCode, String), hyper::Error> {
        let request = Request::post(format!("https://{NAME}{path}")).header("host", NAME);
        let request = request.body(Full::new(Bytes::from("body"))).unwrap();
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok((parts.status, String::from_utf8(body.to_vec()).unwrap()))
    }

    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

/// `/slow` waits, `/never` does not return, `/panic` panics; anything else returns the client's certificates.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    match request.uri().path() {
        "/slow" => tokio::time::sleep(SLOW).await,
        "/never" => std::future::pending().await,
        "/panic" => panic!("on request"),
        _ => {}
    }
    let client = request.extensions().get::<ConnectedClient>().unwrap();
    let received = format!("{} {}", client.address.ip(), client.certificates.len());
    Ok(Response::new(Full::new(received.into())))
}

pub(crate) async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !check().await {
            tokio::time::sleep(PERIOD).await;
        }
    };
    timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("timed out: {what}"));
}
