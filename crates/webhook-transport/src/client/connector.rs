//! Name resolution and TCP connections.

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

/// Resolves names of servers.
pub trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of `host`, to be tried in order. `port` is the port in the server's URL; an
    /// address may have a different one.
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// The resolver of the operating system, usually DNS.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

/// Opens connections, through the proxy that the environment configures, if any.
#[derive(Clone)]
pub(super) struct Connector {
    resolver: Arc<dyn Resolve>,
    proxies: Option<Arc<Matcher>>,
    timeout: Duration,
}

/// Delay before the next address is tried (RFC 8305 §5), so that an address that drops packets costs at most
/// this.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

impl Resolve for SystemResolver {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

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
            return Err(io::Error::new(io::ErrorKind::NotFound, "host has no address"));
        }
        let attempts = (0..)
            .zip(addresses)
            .map(|(turn, address)| attempt(turn, address).boxed());
        let (stream, _) = select_ok(attempts).await?;
        stream.set_nodelay(true)?;
        Ok(TokioIo::new(stream))
    }
}

/// Connects to an address, after a delay that grows with its position.
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
