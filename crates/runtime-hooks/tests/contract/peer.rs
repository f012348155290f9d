//! A foreign server with scripted answers, which records its requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::ready,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::body::Body;
use futures::{future::BoxFuture, stream};
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use runtime_hooks::{
    Catalog, Hook, Registry,
    client::{CallOptions, HookClient},
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest, BeforeClusterCreateResponse},
    discovery::{FailurePolicy, Handler},
    registry::ExtensionConfig,
    server::webhook_transport::{
        CertificateFiles, LiveCertificate, ServerReference,
        client::{Resolve, Transport, TransportOptions},
        server::{ConnectedClient, Encryption, HttpVersions, ServerOptions, ServerTls, serve},
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tower::service_fn;

#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) version: Version,
    pub(crate) body: Bytes,
    pub(crate) from: SocketAddr,
}

/// A scripted answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Bytes with a status, without a content type.
    Bytes(StatusCode, Vec<u8>),
    /// Bytes with a status and a content type.
    Typed(&'static str, Vec<u8>),
    /// A status, and a chunked body without end.
    Endless(StatusCode),
    /// No answer.
    Silence,
}

/// A foreign server.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) ca_bundle: String,
    pub(crate) asked: Arc<Mutex<Vec<RecordedRequest>>>,
    answer: Arc<Mutex<Answer>>,
}

/// A certificate, and the CA that issued it, in PEM.
pub(crate) struct Issued {
    pub(crate) ca_bundle: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Resolves the names of Services to servers.
#[derive(Clone, Default)]
pub(crate) struct Names(pub(crate) BTreeMap<String, SocketAddr>);

impl Answer {
    pub(crate) fn json(value: &Value) -> Self {
        Self::text(&value.to_string())
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Bytes(StatusCode::OK, text.into())
    }

    async fn response(self) -> Response<Body> {
        let (status, body) = match self {
            Self::Bytes(status, body) => (status, Body::from(body)),
            Self::Typed(content_type, body) => {
                let response = Response::builder().header("content-type", content_type);
                return response.body(body.into()).unwrap();
            }
            Self::Endless(status) => {
                let chunks = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from(vec![b' '; 1 << 16])));
                (status, Body::from_stream(chunks))
            }
            Self::Silence => std::future::pending().await,
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response
    }
}

impl Issued {
    /// Issues a certificate for the Service `name` in `system`.
    pub(crate) fn new(name: &str) -> Self {
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec![format!("{name}.system.svc")];
        let leaf = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &ca)
            .unwrap();
        Self {
            ca_bundle: ca.pem(),
            certificate: leaf.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Peer {
    /// Starts the server of the Service `name` in `system`.
    pub(crate) async fn start(name: &str, answer: Answer) -> Self {
        let issued = Issued::new(name);
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("tls.crt"), &issued.certificate).unwrap();
        std::fs::write(folder.path().join("tls.key"), &issued.key).unwrap();
        let certificate = LiveCertificate::load(&CertificateFiles::in_folder(folder.path())).unwrap();
        let tls = ServerTls::new(certificate, HttpVersions::Http1And2).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let peer = Self {
            address: listener.local_addr().unwrap(),
            ca_bundle: issued.ca_bundle,
            asked: Arc::default(),
            answer: Arc::new(Mutex::new(answer)),
        };
        let answering = peer.clone();
        let service = service_fn(move |request| answering.clone().answer(request));
        let encryption = Encryption::Tls(tls);
        tokio::spawn(serve(
            listener,
            encryption,
            service,
            ServerOptions::default(),
            std::future::pending(),
        ));
        peer
    }

    pub(crate) fn set(&self, answer: Answer) {
        *self.answer.lock() = answer;
    }

    pub(crate) fn hits(&self) -> usize {
        self.asked.lock().len()
    }

    /// The number of connections that were opened.
    pub(crate) fn connections(&self) -> usize {
        let asked = self.asked.lock();
        asked
            .iter()
            .map(|asked| asked.from)
            .collect::<BTreeSet<_>>()
            .len()
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        self.asked.lock().push(RecordedRequest {
            method: parts.method,
            // Only HTTP/1 separates the host from the path.
            uri: parts
                .uri
                .path_and_query()
                .map(ToString::to_string)
                .unwrap_or_default(),
            version: parts.version,
            body,
            from: parts.extensions.get::<ConnectedClient>().unwrap().address,
        });
        let answer = self.answer.lock().clone();
        Ok(answer.response().await)
    }
}

impl Names {
    pub(crate) fn new(peers: &[(&str, &Peer)]) -> Self {
        let named = peers
            .iter()
            .map(|(name, peer)| (format!("{name}.system.svc"), peer.address));
        Self(named.collect())
    }
}

impl Resolve for Names {
    fn resolve(&self, host: String, _: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let found = self.0.get(&host).copied();
        Box::pin(ready(Ok(found.into_iter().collect())))
    }
}

/// An ExtensionConfig `config` for the Service `service`.
pub(crate) fn config(config: &str, service: &str, ca_bundle: &str) -> ExtensionConfig {
    ExtensionConfig {
        name: config.to_owned(),
        resource_version: "1".into(),
        server: ServerReference::service("system", service, 443, "/x", ca_bundle.to_owned()).unwrap(),
        namespace_selector: json!({}),
        settings: BTreeMap::from([("a".into(), "config".into())]),
    }
}

/// A handler of `BeforeClusterCreate`.
pub(crate) fn handler(name: &str, failure_policy: FailurePolicy) -> Handler {
    Handler {
        name: name.to_owned(),
        hook: BeforeClusterCreate::reference(),
        timeout_seconds: Some(30),
        failure_policy,
    }
}

/// A client with an empty registry.
pub(crate) fn client(names: Names) -> HookClient {
    client_with_catalog(Catalog::cluster_api(), names)
}

/// A client with an empty registry and the hooks of `catalog`.
pub(crate) fn client_with_catalog(catalog: Catalog, names: Names) -> HookClient {
    let transport = Transport::new(TransportOptions {
        resolver: Arc::new(names),
        proxies: false,
        ..TransportOptions::default()
    });
    HookClient::new(Arc::new(catalog), Arc::new(Registry::listed()), transport).with_circuit_breaker(None)
}

/// A server `ext1` with the handlers `fail` and `ignore`, and a client for it.
pub(crate) async fn pair(answer: Answer) -> (Peer, HookClient) {
    let peer = Peer::start("ext1", answer).await;
    let client = client(Names::new(&[("ext1", &peer)]));
    let handlers = vec![
        handler("fail", FailurePolicy::Fail),
        handler("ignore", FailurePolicy::Ignore),
    ];
    let registered = client
        .registry()
        .register(config("ext1", "ext1", &peer.ca_bundle), handlers);
    registered.unwrap();
    (peer, client)
}

pub(crate) async fn call(
    client: &HookClient,
    handler: &str,
    cached: bool,
) -> Result<BeforeClusterCreateResponse, String> {
    let options = CallOptions {
        cached,
        ..CallOptions::default()
    };
    let request = BeforeClusterCreateRequest::default();
    let called = client.call::<BeforeClusterCreate>(handler, "default", &request, options);
    called.await.map_err(|error| error.to_string())
}
