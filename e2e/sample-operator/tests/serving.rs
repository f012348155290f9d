//! The sample operator over real TLS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic fails the test"
)]

use std::{
    fs,
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use sample_operator::Args;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

const NAME: &str = "webhook.default.svc";

const PATIENCE: Duration = Duration::from_secs(20);

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    roots: RootCertStore,
}

struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        Self {
            issuer: Issuer::new(parameters, key),
            roots,
        }
    }

    /// Writes a certificate and its key like the node: both appear atomically.
    fn issue(&self, folder: &Path) {
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new([NAME.to_owned()])
            .unwrap()
            .signed_by(&key, &self.issuer)
            .unwrap();
        fs::write(folder.join("tls.crt"), leaf.pem()).unwrap();
        fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    }

    async fn connect(&self, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(tls))
            .connect(ServerName::try_from(NAME).unwrap(), stream)
            .await
    }
}

impl Running {
    async fn stop(mut self) {
        drop(self.stop.take());
        timeout(PATIENCE, self.task)
            .await
            .expect("it stops")
            .unwrap()
            .unwrap();
    }
}

async fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Starts a server and waits until it accepts connections.
async fn start(folder: &Path, arguments: &[&str]) -> Running {
    let (port, health) = (free_port().await, free_port().await);
    let flags = [
        "sample-operator".to_owned(),
        "--address=127.0.0.1".to_owned(),
        format!("--port={port}"),
        format!("--health-port={health}"),
        format!("--cert-dir={}", folder.display()),
    ];
    let arguments = Args::parse_from(flags.into_iter().chain(arguments.iter().map(ToString::to_string)));
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(sample_operator::serve(
        arguments,
        async move { drop(stopped.await) },
    ));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    eventually("it listens", async || TcpStream::connect(address).await.is_ok()).await;
    Running {
        address,
        stop: Some(stop),
        task,
    }
}

async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !check().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("timed out: {what}"));
}

async fn post<S>(stream: S, path: &str, body: Value) -> (StatusCode, Value)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    send(&mut sender, path, &body).await
}

fn send(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    path: &str,
    body: &Value,
) -> impl Future<Output = (StatusCode, Value)> + use<> {
    let request = Request::post(path)
        .header("host", NAME)
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let response = sender.send_request(request);
    async move {
        let (parts, body) = response.await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (
            parts.status,
            serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        )
    }
}

fn conversion() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
    "uid": "u", "desiredAPIVersion": "sample.windlass.dev/v1beta1", "objects": [
        {"apiVersion": "sample.windlass.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 4}},
    ]}})
}

#[tokio::test]
async fn a_conversion_is_answered_over_tls() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    authority.issue(folder.path());
    let server = start(folder.path(), &[]).await;
    let stream = authority.connect(server.address).await.unwrap();
    let (status, answer) = post(stream, "/convert?timeout=30s", conversion()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        answer["response"]["convertedObjects"][0]["spec"],
        json!({"width": "4"})
    );
    server.stop().await;
}

#[tokio::test]
async fn a_changed_certificate_is_served_without_a_restart() {
    let folder = TempDir::new().unwrap();
    let (before, after) = (Authority::new(), Authority::new());
    before.issue(folder.path());
    let server = start(folder.path(), &[]).await;
    before.connect(server.address).await.unwrap();
    after.issue(folder.path());
    eventually("the new certificate is served", async || {
        after.connect(server.address).await.is_ok()
    })
    .await;
    fs::write(folder.path().join("tls.key"), "garbage").unwrap();
    after.connect(server.address).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn the_wrong_certificate_fault_serves_an_untrusted_certificate() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    authority.issue(folder.path());
    let server = start(folder.path(), &["--fault=wrong-certificate"]).await;
    authority.connect(server.address).await.unwrap_err();
    server.stop().await;
}

#[tokio::test]
async fn an_admission_fault_does_not_affect_conversion() {
    let folder = TempDir::new().unwrap();
    let authority = Authority::new();
    authority.issue(folder.path());
    for (fault, expected) in [
        ("admission-not-found", StatusCode::NOT_FOUND),
        ("admission-error", StatusCode::INTERNAL_SERVER_ERROR),
        ("admission-garbage", StatusCode::OK),
    ] {
        let server = start(folder.path(), &[&format!("--fault={fault}")]).await;
        for path in ["/mutate", "/validate"] {
            let stream = authority.connect(server.address).await.unwrap();
            let (status, answer) = post(stream, path, json!({})).await;
            assert_eq!((status, answer), (expected, Value::Null), "{fault} {path}");
        }
        let stream = authority.connect(server.address).await.unwrap();
        let (status, answer) = post(stream, "/convert", conversion()).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(answer["response"]["result"]["status"], "Success");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_stand_in_speaks_tls_and_plain_http_on_one_port() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    authority.issue(folder.path());
    let server = start(folder.path(), &["--stand-in"]).await;
    let plain = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(post(plain, "/any-path", conversion()).await.0, StatusCode::OK);
    let tls = authority.connect(server.address).await.unwrap();
    assert_eq!(post(tls, "/another", conversion()).await.0, StatusCode::OK);
    server.stop().await;
}

#[tokio::test]
async fn a_stand_in_serves_a_certificate_that_is_created_later() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    let server = start(folder.path(), &["--stand-in"]).await;
    authority.connect(server.address).await.unwrap_err();
    authority.issue(folder.path());
    eventually("the certificate is served", async || {
        authority.connect(server.address).await.is_ok()
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_request_in_flight_finishes_before_the_server_stops() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    authority.issue(folder.path());
    let mut server = start(folder.path(), &["--fault=slow=400ms"]).await;
    let idle = authority.connect(server.address).await.unwrap();
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(authority.connect(server.address).await.unwrap()))
            .await
            .unwrap();
    let connection = tokio::spawn(connection);
    let answer = tokio::spawn(send(&mut sender, "/convert", &conversion()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(server.stop.take());
    assert_eq!(answer.await.unwrap().0, StatusCode::OK);
    timeout(PATIENCE, connection)
        .await
        .expect("the connection is closed")
        .unwrap()
        .unwrap();
    server.stop().await;
    drop(idle);
}

#[tokio::test]
async fn the_port_and_idle_connections_are_closed_immediately_unless_the_server_lingers() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    authority.issue(folder.path());
    for (arguments, lingers) in [(&[] as &[&str], false), (&["--linger=1s"], true)] {
        let mut server = start(folder.path(), &[arguments, &["--fault=slow=400ms"]].concat()).await;
        let (mut idle, connection) =
            http1::handshake(TokioIo::new(authority.connect(server.address).await.unwrap()))
                .await
                .unwrap();
        tokio::spawn(connection);
        assert_eq!(send(&mut idle, "/convert", &conversion()).await.0, StatusCode::OK);
        let busy = authority.connect(server.address).await.unwrap();
        let under_way = tokio::spawn(post(busy, "/convert", conversion()));
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(server.stop.take());
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(TcpStream::connect(server.address).await.is_ok(), lingers);
        assert_eq!(idle.is_ready() && !idle.is_closed(), lingers);
        assert_eq!(under_way.await.unwrap().0, StatusCode::OK);
        server.stop().await;
    }
}

#[tokio::test]
async fn webhooks_are_served_at_the_configured_paths() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    authority.issue(folder.path());
    let server = start(folder.path(), &["--convert-path=/elsewhere"]).await;
    for (path, expected) in [
        ("/elsewhere", StatusCode::OK),
        ("/convert", StatusCode::NOT_FOUND),
    ] {
        let stream = authority.connect(server.address).await.unwrap();
        assert_eq!(post(stream, path, conversion()).await.0, expected, "{path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn webhooks_fail_without_the_configuration_file() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    authority.issue(folder.path());
    let config = folder.path().join("config.yaml");
    let server = start(folder.path(), &[&format!("--config={}", config.display())]).await;
    for expected in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK] {
        let stream = authority.connect(server.address).await.unwrap();
        assert_eq!(post(stream, "/convert", conversion()).await.0, expected);
        fs::write(&config, "").unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn a_server_is_not_ready_before_its_delay_ends() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    authority.issue(folder.path());
    let server = start(folder.path(), &["--ready-after=300ms"]).await;
    let readiness = async || {
        let stream = TcpStream::connect(server.address).await.unwrap();
        post(stream, "/readyz", Value::Null).await.0
    };
    assert_eq!(readiness().await, StatusCode::INTERNAL_SERVER_ERROR);
    eventually("it is ready", async || readiness().await == StatusCode::OK).await;
    server.stop().await;
}

#[tokio::test]
async fn a_server_without_its_certificate_does_not_start() {
    let folder = TempDir::new().unwrap();
    let arguments = Args::parse_from(["sample-operator", "--cert-dir", folder.path().to_str().unwrap()]);
    let error = sample_operator::serve(arguments, std::future::pending())
        .await
        .unwrap_err();
    let message = format!("{error:#}");
    assert!(
        message.starts_with("cannot load the serving certificate: "),
        "{message}"
    );
    assert!(message.contains("tls.crt"), "{message}");
}
