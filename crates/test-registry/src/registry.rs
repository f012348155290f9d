//! An image registry in this process, with configurable faults.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, Response, StatusCode, header, request::Parts},
    serve::Listener,
};
use futures::{StreamExt, stream};
use oci::{ContentDigest, ImageReference, PackedImage, manifest::IMAGE_MANIFEST};
use test_authority::TestCertificate;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
    server::TlsStream,
};

/// Returns a response in place of the registry's, if any. Gets the request and the number of earlier
/// requests.
type Fault = Box<dyn Fn(&Parts, usize) -> Option<Response<Body>> + Send + Sync>;

/// A registry that runs as long as the test.
pub struct TestRegistry {
    /// The listening address.
    pub address: SocketAddr,
    state: Arc<Contents>,
}

/// A request that the registry has received.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// HTTP method of the request.
    pub method: Method,
    /// The path of the requested URL.
    pub path: String,
    /// The query of the requested URL; empty if there is none.
    pub query: String,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// Complete body of the request.
    pub body: Bytes,
}

#[derive(Default)]
struct Contents {
    manifests: Mutex<BTreeMap<String, (String, Bytes)>>,
    blobs: Mutex<BTreeMap<String, Bytes>>,
    requests: Mutex<Vec<ReceivedRequest>>,
    fault: Mutex<Option<Fault>>,
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl TestRegistry {
    /// Starts a registry without TLS.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self::serve(listener, address)
    }

    /// Starts a registry with this certificate.
    ///
    /// # Panics
    ///
    /// If no port is free, or the certificate is invalid.
    pub async fn start_with(certificate: &TestCertificate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let chain = CertificateDer::pem_slice_iter(certificate.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.map(Result::unwrap).collect(), key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::serve(TlsListener { listener, acceptor }, address)
    }

    fn serve<L: Listener<Addr = SocketAddr>>(listener: L, address: SocketAddr) -> Self {
        let state = Arc::<Contents>::default();
        let router = Router::new().fallback(answer).with_state(state.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, state }
    }

    /// The host and port for references.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The image with this tag in the repository that most tests use.
    ///
    /// # Panics
    ///
    /// If the tag is invalid.
    pub fn image(&self, tag: &str) -> ImageReference {
        format!("{}/team/app:{tag}", self.host()).parse().unwrap()
    }

    /// Stores an image and tags it with `tag`.
    pub fn store(&self, tag: &str, packed: &PackedImage) -> ContentDigest {
        for blob in packed.blobs() {
            self.store_blob(blob);
        }
        self.store_manifest(tag, IMAGE_MANIFEST, packed.manifest().clone())
    }

    /// Stores a blob.
    ///
    /// # Panics
    ///
    /// If another thread panicked while storing.
    pub fn store_blob(&self, content: &Bytes) {
        let digest = ContentDigest::compute(content).to_string();
        self.state.blobs.lock().unwrap().insert(digest, content.clone());
    }

    /// Stores a manifest under `version`, a tag or a digest, and under its own digest.
    ///
    /// # Panics
    ///
    /// If another thread panicked while storing.
    pub fn store_manifest(&self, version: &str, media_type: &str, content: Bytes) -> ContentDigest {
        let digest = ContentDigest::compute(&content);
        let mut manifests = self.state.manifests.lock().unwrap();
        for version in [version, digest.as_str()] {
            manifests.insert(version.to_owned(), (media_type.to_owned(), content.clone()));
        }
        digest
    }

    /// Calls `fault` for every following request, and clears the recorded requests.
    ///
    /// # Panics
    ///
    /// If another thread panicked while responding.
    pub fn fail(&self, fault: impl Fn(&Parts, usize) -> Option<Response<Body>> + Send + Sync + 'static) {
        self.state.requests.lock().unwrap().clear();
        *self.state.fault.lock().unwrap() = Some(Box::new(fault));
    }

    /// The requests since the start, or since the last call of [`fail`](Self::fail).
    ///
    /// # Panics
    ///
    /// If another thread panicked while responding.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Counts the requests whose path contains `part`.
    pub fn count(&self, part: &str) -> usize {
        self.requests()
            .iter()
            .filter(|request| request.path.contains(part))
            .count()
    }
}

impl ReceivedRequest {
    /// The `Authorization` header.
    ///
    /// # Panics
    ///
    /// If it is not text.
    pub fn authorization(&self) -> Option<&str> {
        Some(self.headers.get(header::AUTHORIZATION)?.to_str().unwrap())
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A response with this status and body.
///
/// # Panics
///
/// If the status is invalid.
pub fn response(status: u16, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// Adds a header to a response.
///
/// # Panics
///
/// If the value is invalid.
pub fn with_header(mut response: Response<Body>, name: &'static str, value: &str) -> Response<Body> {
    response.headers_mut().append(name, value.parse().unwrap());
    response
}

/// A response that declares `length` bytes, sends `start`, and then stalls.
pub fn stalled(start: Bytes, length: usize) -> Response<Body> {
    let parts = stream::iter([Ok::<_, Infallible>(start)]).chain(stream::pending());
    with_header(
        response(200, Body::from_stream(parts)),
        "content-length",
        &length.to_string(),
    )
}

/// A response that declares `length` bytes, and ends after `start`.
pub fn cut_off(start: Bytes, length: usize) -> Response<Body> {
    let error = io::Error::other("cut off");
    let parts = stream::iter([Ok(start), Err(error)]);
    with_header(
        response(200, Body::from_stream(parts)),
        "content-length",
        &length.to_string(),
    )
}

async fn answer(State(contents): State<Arc<Contents>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 64 << 20).await.unwrap();
    let before = {
        let mut requests = contents.requests.lock().unwrap();
        requests.push(ReceivedRequest {
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers.clone(),
            body: body.clone(),
        });
        requests.len() - 1
    };
    if let Some(fault) = &*contents.fault.lock().unwrap()
        && let Some(response) = fault(&head, before)
    {
        return response;
    }
    contents.answer(&head, body)
}

impl Contents {
    fn answer(&self, head: &Parts, body: Bytes) -> Response<Body> {
        let not_found = || response(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#);
        let path = head.uri.path();
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        if let Some((_, version)) = path.split_once("/manifests/") {
            let mut manifests = self.manifests.lock().unwrap();
            if head.method == Method::PUT {
                let media_type = head.headers[header::CONTENT_TYPE].to_str().unwrap().to_owned();
                let digest = ContentDigest::compute(&body).to_string();
                manifests.insert(digest.clone(), (media_type.clone(), body.clone()));
                manifests.insert(version.to_owned(), (media_type, body));
                return with_header(response(201, ""), "docker-content-digest", &digest);
            }
            return match manifests.get(version) {
                Some((media_type, content)) => {
                    let digest = ContentDigest::compute(content).to_string();
                    let found = with_header(response(200, content.clone()), "content-type", media_type);
                    with_header(found, "docker-content-digest", &digest)
                }
                None => not_found(),
            };
        }
        let Some((repository, rest)) = path.split_once("/blobs/") else {
            return not_found();
        };
        let mut blobs = self.blobs.lock().unwrap();
        match (&head.method, rest) {
            (&Method::POST, "uploads/") => with_header(
                response(202, ""),
                "location",
                &format!("{repository}/blobs/uploads/1?state=x"),
            ),
            (&Method::PUT, "uploads/1") => {
                let digest = ContentDigest::compute(&body).to_string();
                let wanted = format!("state=x&digest={}", digest.replace(':', "%3A"));
                if head.uri.query() != Some(&wanted) {
                    return response(400, r#"{"errors":[{"code":"DIGEST_INVALID"}]}"#);
                }
                blobs.insert(digest, body);
                response(201, "")
            }
            (_, digest) if is_read => match blobs.get(digest) {
                Some(content) => response(200, content.clone()),
                None => not_found(),
            },
            _ => response(405, ""),
        }
    }
}
