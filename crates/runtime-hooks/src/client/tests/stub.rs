//! A TLS server with scripted replies.

use std::{collections::BTreeMap, convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, stream};
use http::{Response, StatusCode, header::LOCATION};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Frame, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use webhook_transport::client::Resolve;

/// The reply to a request.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Json(Value),
    Text(StatusCode, String),
    Redirect(String),
    Large(usize),
    /// A byte every 20 ms, without end.
    Drip,
    /// No reply.
    Silence,
    /// The connection is closed.
    Close,
}

/// A server and the requests that it received: each path with its body.
#[derive(Clone)]
pub(super) struct Stub {
    pub(super) address: SocketAddr,
    pub(super) ca_bundle: String,
    pub(super) asked: Arc<Mutex<Vec<(String, Value)>>>,
    /// The server names of TLS handshakes.
    pub(super) called: Arc<Mutex<Vec<String>>>,
    reply: Arc<Mutex<Reply>>,
}

/// Resolves servers by name, ignoring the port.
#[derive(Clone, Default)]
pub(super) struct Names(pub(super) BTreeMap<String, SocketAddr>);

impl Stub {
    /// Starts a server with a certificate for `name`, issued by its own CA.
    pub(super) async fn start(name: &str, reply: Reply) -> Self {
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![name.to_owned()])
            .unwrap()
            .signed_by(&key, &ca)
            .unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Self {
            address: listener.local_addr().unwrap(),
            ca_bundle: ca.pem(),
            asked: Arc::default(),
            called: Arc::default(),
            reply: Arc::new(Mutex::new(reply)),
        };
        tokio::spawn(stub.clone().accept(listener, TlsAcceptor::from(Arc::new(config))));
        stub
    }

    pub(super) fn set(&self, reply: Reply) {
        *self.reply.lock() = reply;
    }

    pub(super) fn hits(&self) -> usize {
        self.asked.lock().len()
    }

    async fn accept(self, listener: TcpListener, tls: TlsAcceptor) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let (stub, tls) = (self.clone(), tls.clone());
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else {
                    return;
                };
                let name = stream.get_ref().1.server_name().unwrap_or_default();
                stub.called.lock().push(name.to_owned());
                let service = service_fn(move |request| stub.clone().answer(request));
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    }

    async fn answer(
        self,
        request: http::Request<Incoming>,
    ) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, io::Error> {
        let path = request.uri().to_string();
        let body = request.into_body().collect().await.map_err(io::Error::other)?;
        let body = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        self.asked.lock().push((path, body));
        let whole = |body: String| Full::new(Bytes::from(body)).boxed_unsync();
        let reply = self.reply.lock().clone();
        let mut response = Response::new(match &reply {
            Reply::Json(value) => whole(value.to_string()),
            Reply::Text(_, text) => whole(text.clone()),
            Reply::Redirect(_) => whole(String::new()),
            Reply::Large(length) => whole(" ".repeat(*length)),
            Reply::Drip => StreamBody::new(stream::unfold((), async |()| {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
            }))
            .boxed_unsync(),
            Reply::Silence => std::future::pending().await,
            Reply::Close => return Err(io::ErrorKind::BrokenPipe.into()),
        });
        match reply {
            Reply::Text(status, _) => *response.status_mut() = status,
            Reply::Redirect(to) => {
                *response.status_mut() = StatusCode::FOUND;
                response.headers_mut().insert(LOCATION, to.parse().unwrap());
            }
            _ => {}
        }
        Ok(response)
    }
}

/// The response of a handler without a message.
pub(super) fn success() -> Reply {
    Reply::Json(json!({"status": "Success"}))
}

impl Resolve for Names {
    fn resolve(&self, host: String, _: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let found = self.0.get(&host).copied();
        async move { Ok(found.into_iter().collect()) }.boxed()
    }
}
