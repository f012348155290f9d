//! Connections to the API server. If one of several API servers loses power, it neither closes its
//! connections nor responds. So connections are abandoned early, and idle ones are closed.

use std::time::Duration;

use http::{HeaderValue, header::USER_AGENT};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt, retry::RetryPolicy},
};
use tower::{BoxError, ServiceExt, retry::RetryLayer, util::option_layer};

/// The timeout for connecting to the API server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The idle time before a keepalive probe, and the interval between probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// The timeout for a response to keepalive probes, and for acknowledgements of sent data.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a connection may be idle: longer than the interval at which a leader renews its Lease, and
/// shorter than the time before a request is sent again, so that the second request uses a new connection. A
/// load balancer may acknowledge data for an unavailable API server.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The read timeout after a request on connections of a long-running process. Requests have a shorter
/// timeout, and watches end earlier.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Prepares `config` for a long-running process, whose clients are [`fenced`](crate::lease::fenced) and
/// therefore retry themselves.
#[must_use]
pub fn operator_config(mut config: Config) -> Config {
    config.default_retry = false;
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    command_config(config)
}

/// Adds the user agent and the connect timeout to `config`.
#[must_use]
pub fn command_config(mut config: Config) -> Config {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let agent = HeaderValue::from_static(concat!("windlass/", env!("CARGO_PKG_VERSION")));
    config.headers.retain(|(name, _)| *name != USER_AGENT);
    config.headers.push((USER_AGENT, agent));
    config
}

/// Creates a client like kube's own, with the connection settings of this module.
///
/// # Errors
///
/// When the configuration cannot be used.
pub fn client(config: Config) -> Result<Client, kube::Error> {
    // Timeouts for connections through a proxy are left to kube.
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let secured = config.rustls_https_connector_with_connector(connector())?;
    let mut connector = TimeoutConnector::new(secured);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let client: legacy::Client<_, Body> = legacy::Builder::new(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build(connector);
    let retry = || RetryLayer::new(RetryPolicy::server_retry());
    let builder = ClientBuilder::new(client.map_err(BoxError::from), &config.default_namespace)
        .with_layer(&config.extra_headers_layer()?)
        .with_layer(&option_layer(config.auth_layer()?))
        .with_layer(&option_layer(config.default_retry.then(retry)))
        .with_layer(&config.base_uri_layer());
    Ok(builder.build())
}

/// Returns the connector for TCP.
fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    // TLS is added on top.
    connector.enforce_http(false);
    connector.set_keepalive(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL / 2));
    // For systems without TCP_USER_TIMEOUT.
    connector.set_keepalive_retries(Some(3));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(ACKNOWLEDGE_TIMEOUT));
    connector
}

#[cfg(test)]
mod tests {
    use std::{
        net::SocketAddr,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use http::{Request, Uri};
    use hyper::{server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use parking_lot::Mutex;
    use socket2::SockRef;
    use tokio::net::TcpListener;
    use tower::Service;

    use super::*;

    /// Received requests, with their headers.
    type ReceivedRequests = Arc<Mutex<Vec<http::request::Parts>>>;

    /// Starts an API server that answers every request with an empty object. Returns its address, the number
    /// of connections, and the requests.
    async fn api_server() -> (SocketAddr, Arc<AtomicUsize>, ReceivedRequests) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, received) = (Arc::<AtomicUsize>::default(), ReceivedRequests::default());
        let (count, log) = (connections.clone(), received.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let log = log.clone();
                let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
                    log.lock().push(request.into_parts().0);
                    async { Ok::<_, BoxError>(http::Response::new("{}".to_owned())) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        (address, connections, received)
    }

    fn config(address: SocketAddr) -> Config {
        // Installs the TLS provider, as `main` does. Fails if another test has installed it, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Config::new(format!("http://{address}/below").parse().unwrap())
    }

    async fn send_request(client: &Client) {
        let request = Request::get("/version").body(Vec::new()).unwrap();
        client.request::<serde_json::Value>(request).await.unwrap();
    }

    #[tokio::test]
    async fn a_silent_connection_times_out() {
        let (address, ..) = api_server().await;
        let uri: Uri = format!("https://{address}").parse().unwrap();
        let connection = connector().call(uri).await.unwrap();
        let socket = SockRef::from(connection.inner());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(ACKNOWLEDGE_TIMEOUT));
    }

    #[tokio::test]
    async fn an_idle_connection_is_not_reused() {
        let (address, connections, _) = api_server().await;
        let client = client(config(address)).unwrap();
        tokio::time::pause();
        for (pause, expected) in [(Duration::ZERO, 1), (IDLE_TIMEOUT / 2, 1), (IDLE_TIMEOUT * 2, 2)] {
            tokio::time::advance(pause).await;
            send_request(&client).await;
            assert_eq!(connections.load(Ordering::SeqCst), expected, "after {pause:?}");
        }
    }

    #[tokio::test]
    async fn requests_have_the_configured_headers() {
        let (address, _, received) = api_server().await;
        let mut config = config(address);
        config.auth_info.token = Some("token".to_owned().into());
        config.auth_info.impersonate = Some("alice".to_owned());
        config
            .headers
            .push((http::header::USER_AGENT, "windlass".parse().unwrap()));
        config.default_namespace = "here".to_owned();
        let client = client(config).unwrap();
        send_request(&client).await;
        assert_eq!(client.default_namespace(), "here");
        let received = received.lock();
        assert_eq!(received[0].uri.path(), "/below/version");
        for (name, value) in [
            ("authorization", "Bearer token"),
            ("impersonate-user", "alice"),
            ("user-agent", "windlass"),
        ] {
            assert_eq!(received[0].headers[name], value);
        }
    }

    #[tokio::test]
    async fn proxies_are_left_to_kube() {
        let (address, ..) = api_server().await;
        let proxied = || {
            let mut config = config(address);
            config.proxy_url = Some("http://127.0.0.1:1".parse().unwrap());
            config
        };
        let outcome =
            |client: Result<Client, kube::Error>| client.map(drop).map_err(|error| error.to_string());
        assert_eq!(outcome(client(proxied())), outcome(Client::try_from(proxied())));
    }
}
