//! HTTP client for servers that policies refer to. It limits the size of answers, and follows no redirects.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, dns::Name},
    },
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use thiserror::Error;
use tower::Service;

use super::allowed_hosts::AllowedHosts;

/// Sends requests to servers that policies refer to.
pub(super) struct ReferenceClient {
    /// The error is reported at each request.
    pool: Result<Pool, String>,
}

/// A request, ready to be sent.
#[derive(Clone)]
pub(super) struct ServerCall {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no usable answer. Errors never repeat content of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ServerCallError {
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    #[error("cannot connect: {0}")]
    Connect(String),
    #[error("the connection ended without an answer")]
    Interrupted,
    #[error("HTTP {0}")]
    Status(StatusCode),
    #[error("HTTP {0}: redirects are not followed; use the target URL")]
    Redirect(StatusCode),
    #[error("the answer is compressed")]
    Compressed,
    #[error("the answer is larger than {LARGEST_ANSWER} bytes")]
    TooLarge,
}

type Pool = Client<HttpsConnector<HttpConnector<ReferenceResolver>>, Full<Bytes>>;

/// Resolves host names, and drops loopback and link-local addresses.
#[derive(Clone)]
struct ReferenceResolver {
    hosts: Arc<AllowedHosts>,
}

/// The largest body of an answer, in bytes.
pub(super) const LARGEST_ANSWER: usize = 1 << 20;

/// The largest head of an answer, in bytes.
const LARGEST_HEAD: usize = 64 << 10;

/// The time limit for connecting to a server, over all its addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The most idle connections to a server.
const IDLE_CONNECTIONS: usize = 4;

/// Metadata addresses of clouds that are not link-local. They serve credentials of the machine.
const METADATA: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

impl ReferenceClient {
    /// Trusts the CA certificates of the system and those in `ca`, as PEM.
    pub(super) fn new(hosts: Arc<AllowedHosts>, ca: &[u8]) -> Self {
        Self {
            pool: connection_pool(hosts, ca),
        }
    }

    /// Sends a request, and returns the body of a 2xx answer. The caller limits the time.
    pub(super) async fn send(&self, call: ServerCall) -> Result<Bytes, ServerCallError> {
        let pool = self
            .pool
            .as_ref()
            .map_err(|error| ServerCallError::Tls(error.clone()))?;
        let mut request = Request::new(Full::new(call.body));
        *request.method_mut() = call.method;
        *request.uri_mut() = call.uri;
        *request.headers_mut() = call.headers;
        let response = pool.request(request).await.map_err(|error| {
            if error.is_connect() {
                ServerCallError::Connect(root_cause(&error))
            } else {
                ServerCallError::Interrupted
            }
        })?;
        let status = response.status();
        if status.is_redirection() {
            return Err(ServerCallError::Redirect(status));
        }
        if !status.is_success() {
            return Err(ServerCallError::Status(status));
        }
        let encoding = response.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(ServerCallError::Compressed);
        }
        read_body(response.into_body()).await
    }
}

fn connection_pool(hosts: Arc<AllowedHosts>, ca: &[u8]) -> Result<Pool, String> {
    let provider = Arc::new(ring::default_provider());
    let extra: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(ca).collect();
    let extra = extra.map_err(|error| format!("--policy-http-ca: {error}"))?;
    let verifier =
        Verifier::new_with_extra_roots(extra, provider.clone()).map_err(|error| error.to_string())?;
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let mut connector = HttpConnector::new_with_resolver(ReferenceResolver { hosts });
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .http1_max_buf_size(LARGEST_HEAD)
        .build(connector))
}

async fn read_body(mut body: Incoming) -> Result<Bytes, ServerCallError> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ServerCallError::Interrupted)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if read.len() + data.len() > LARGEST_ANSWER {
            return Err(ServerCallError::TooLarge);
        }
        read.extend_from_slice(&data);
    }
    Ok(read.into())
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

impl Service<Name> for ReferenceResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        // The operator allowed an exact name wherever it resolves to. A name below an allowed domain may
        // belong to anyone.
        let is_exact = self.hosts.has_name(name.as_str());
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<_> = found
                .filter(|address| is_exact && !is_metadata(address.ip()) || is_public(address.ip()))
                .collect();
            if addresses.is_empty() {
                let problem = format!("{} has no address that policies may call", name.as_str());
                return Err(io::Error::new(io::ErrorKind::NotFound, problem));
            }
            Ok(addresses.into_iter())
        })
    }
}

/// Reports whether machines get credentials at an address. Policies reach it only if the address itself is
/// allowed.
fn is_metadata(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    is_link_local || METADATA.contains(&address)
}

/// Reports whether an address belongs to another machine.
fn is_public(address: IpAddr) -> bool {
    let canonical = address.to_canonical();
    !is_metadata(canonical) && !canonical.is_loopback() && !canonical.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_addresses_are_detected_in_every_form() {
        for (address, is_metadata_address) in [
            ("169.254.169.254", true),
            ("::ffff:169.254.169.254", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("100.100.100.200", true),
            ("10.0.0.1", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(
                is_metadata(address.parse().unwrap()),
                is_metadata_address,
                "{address}"
            );
        }
        for address in ["127.0.0.1", "::1", "0.0.0.0", "::ffff:127.0.0.1", "169.254.1.1"] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        assert!(is_public("10.0.0.1".parse().unwrap()));
    }
}
