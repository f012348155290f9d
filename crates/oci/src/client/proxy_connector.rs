//! TCP connections, through the environment's proxy if there is one.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
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

/// Opens connections. It requests a tunnel from the proxy (`CONNECT`) even without TLS.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    direct: HttpConnector,
    proxies: Option<Arc<Matcher>>,
    timeout: Duration,
}

impl ProxyConnector {
    pub(super) fn new(proxies: bool, timeout: Duration) -> Self {
        let mut direct = HttpConnector::new();
        direct.set_nodelay(true);
        direct.enforce_http(false);
        Self {
            direct,
            proxies: proxies.then(|| Arc::new(Matcher::from_env())),
            timeout,
        }
    }

    async fn connect(mut self, uri: Uri) -> io::Result<TokioIo<TcpStream>> {
        if let Some(proxy) = self.proxies.as_ref().and_then(|proxies| proxies.intercept(&uri)) {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct);
            if let Some(auth) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(auth.clone());
            }
            return tunnel.call(uri).await.map_err(io::Error::other);
        }
        self.direct.call(uri).await.map_err(io::Error::other)
    }
}

impl Service<Uri> for ProxyConnector {
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
