//! Connections: where a server is, and how it is reached.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, select_ok},
};
use http::Uri;
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::Service;

use super::TransportOptions;

/// Where a server is.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `host`, which listens on `port` by its name; an address may have another. They are tried in order.
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// What the system knows: DNS in most cases.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

/// Makes connections, through the environment's proxy where there is one for the server.
#[derive(Clone)]
pub(super) struct Connector {
    resolver: Arc<dyn Resolve>,
    proxies: Option<Arc<Matcher>>,
    timeout: Duration,
}

/// Between the attempts at two addresses (RFC 8305 §5): one that swallows packets takes no more time than that.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

// === impl SystemResolver ===

impl Resolve for SystemResolver {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

// === impl Connector ===

impl Connector {
    pub(super) fn new(options: &TransportOptions) -> Self {
        Self {
            resolver: options.resolver.clone(),
            proxies: options.proxies.then(|| Arc::new(Matcher::from_env())),
            timeout: options.connect_timeout,
        }
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<TcpStream>> {
        if let Some(proxy) = self.proxies.as_ref().and_then(|proxies| proxies.intercept(&uri)) {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let mut tunnel = Tunnel::new(proxy.uri().clone(), connector);
            if let Some(auth) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(auth.clone());
            }
            return tunnel.call(uri).await.map_err(io::Error::other);
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        let addresses = self.resolver.resolve(host, port).await?;
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
        }
        let attempts = (0..)
            .zip(addresses)
            .map(|(turn, address)| attempt(turn, address).boxed());
        let (stream, _) = select_ok(attempts).await?;
        stream.set_nodelay(true)?;
        Ok(TokioIo::new(stream))
    }
}

/// A connection to an address, when those before it have had some time.
async fn attempt(turn: u32, address: SocketAddr) -> io::Result<TcpStream> {
    tokio::time::sleep(ATTEMPT_DELAY * turn).await;
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    TcpStream::connect(address).await.map_err(failed)
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let timeout = self.timeout;
        let connected = tokio::time::timeout(timeout, self.clone().connect(uri));
        Box::pin(async move {
            connected.await.unwrap_or_else(|_| {
                let problem = format!("no connection within {}s", timeout.as_secs_f32());
                Err(io::Error::new(io::ErrorKind::TimedOut, problem))
            })
        })
    }
}
