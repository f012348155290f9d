//! Malicious and well-behaved clients, over TLS.

use std::{future::pending, net::SocketAddr, sync::Arc};

use futures::future::join_all;
use kube::Client;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{PrivateKeyDer, ServerName},
    sign::CertifiedKey,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower::{BoxError, service_fn};
use webhook_transport::{
    LiveCertificate,
    server::{Encryption, HttpVersions, ServerTls, serve},
};
use windlass_cluster::{Cluster, Index, kinds, watch::Watch};

use super::{
    bodies::LONGEST_BODY,
    guard::{Guard, IDENTIFICATION, PATH, router},
    server::{OPTIONS, with_body_limit},
};
use crate::tasks::GRACE;

const NAME: &str = "windlass.windlass-system.svc";

/// A running guard and a connector to it.
struct Served {
    address: SocketAddr,
    connector: TlsConnector,
}

impl Served {
    async fn start() -> Self {
        let issued = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        let certificate = issued.cert.der().clone();
        let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let served = CertifiedKey::from_der(vec![certificate.clone()], key, &provider).unwrap();
        let tls = ServerTls::new(LiveCertificate::fixed(served), HttpVersions::Http1).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = with_body_limit(router(guard()));
        tokio::spawn(serve(listener, Encryption::Tls(tls), router, OPTIONS, pending()));
        Self {
            address,
            connector: TlsConnector::from(Arc::new(client)),
        }
    }

    /// Opens a connection from 127.0.0.`client`.
    async fn connect(&self, client: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, client], 0))).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// Opens a TLS connection, and sends `sent` as the start of a body of `length` bytes.
    async fn begin(&self, client: u8, length: usize, sent: &[u8]) -> TlsStream<TcpStream> {
        let name = ServerName::try_from(NAME).unwrap();
        let mut stream = self
            .connector
            .connect(name, self.connect(client).await)
            .await
            .unwrap();
        let head = format!("POST {PATH} HTTP/1.1\r\nhost: {NAME}\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may reject the request before it has read everything.
        let _ = stream.write_all(sent).await;
        let _ = stream.flush().await;
        stream
    }

    /// Sends a request, and returns the status line.
    async fn send_review(&self, client: u8, question: &[u8]) -> String {
        let mut stream = self.begin(client, question.len(), question).await;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        String::from_utf8(status.to_vec()).unwrap()
    }
}

fn guard() -> Guard {
    let answering = service_fn(move |_: http::Request<kube::client::Body>| async move {
        let user = json!({"metadata": {}, "status": {"userInfo": {"username": "windlass"}}});
        let body = kube::client::Body::from(user.to_string().into_bytes());
        Ok::<_, BoxError>(http::Response::new(body))
    });
    let index = Index::new();
    let watch = Watch::all(kinds::BUNDLE_DEPLOYMENT);
    index.begin_relist(&watch);
    index.finish_relist(&watch);
    Guard {
        index: Arc::new(index),
        cluster: Cluster::new(Client::new(answering, "default"), IDENTIFICATION),
        certificates: String::new(),
        bodies: Arc::default(),
    }
}

fn question(of: &Value) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "DELETE", "userInfo": {"username": "alice"}, "oldObject": of,
            "resource": {"group": "apiextensions.k8s.io", "version": "v1", "resource": "customresourcedefinitions"},
        },
    });
    review.to_string().into_bytes()
}

#[tokio::test]
async fn idle_connections_make_room_for_others() {
    let served = Served::start().await;
    let mut idle = join_all((0..OPTIONS.connections + 10).map(|_| served.connect(2))).await;
    assert_eq!(served.send_review(3, &question(&json!({}))).await, "HTTP/1.1 200");
    // The server closes the connections beyond its limit.
    for stream in &mut idle[..10] {
        assert!(!matches!(stream.read(&mut [0]).await, Ok(1..)));
    }
    assert_eq!(
        served.send_review(2, &question(&json!({}))).await,
        "HTTP/1.1 200",
        "a client that holds all other connections is served, too"
    );
}

#[tokio::test]
async fn a_slow_client_delays_only_itself() {
    let served = Served::start().await;
    let slow = join_all((0..20).map(|_| served.begin(2, 1000, b"{"))).await;
    for _ in 0..3 {
        assert_eq!(served.send_review(3, &question(&json!({}))).await, "HTTP/1.1 200");
    }
    for mut stream in slow {
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said).await;
        let refused = ["HTTP/1.1 408", "HTTP/1.1 503"]
            .iter()
            .any(|status| said.starts_with(status));
        assert!(refused, "{said}");
    }
}

#[tokio::test]
async fn a_too_large_body_is_rejected_and_two_large_objects_are_not() {
    let served = Served::start().await;
    let large = "a".repeat(6 << 20);
    assert_eq!(
        served
            .send_review(2, &question(&json!({"spec": {"names": large}})))
            .await,
        "HTTP/1.1 200"
    );
    let longer = vec![b' '; LONGEST_BODY + 1];
    assert_eq!(served.send_review(2, &longer).await, "HTTP/1.1 413");
    let many = json!({"spec": {"conversion": vec![0; 1 << 20]}});
    assert_eq!(served.send_review(2, &question(&many)).await, "HTTP/1.1 400");
}

#[test]
fn the_drain_timeout_fits_into_the_grace_period() {
    let drained = OPTIONS.linger + OPTIONS.drain_timeout.unwrap();
    assert!(drained < GRACE, "{drained:?}");
}
