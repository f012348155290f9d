use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::{CallError, Endpoints, ResolveError, WebhookClient};

const TIMEOUT: Duration = Duration::from_secs(5);

/// Resolves the Service `hook` to one endpoint; `empty` has none.
struct One(SocketAddr);

impl Endpoints for One {
    fn resolve(&self, _: &str, service: &str, _: i64) -> Result<SocketAddr, ResolveError> {
        match service {
            "hook" => Ok(self.0),
            "empty" => Err(ResolveError::NoEndpoints(service.to_owned())),
            _ => Err(ResolveError::ServiceNotFound(service.to_owned())),
        }
    }
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "hook-ca");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn bundle(&self) -> String {
        STANDARD.encode(self.0.pem())
    }
}

/// Starts a server for `hook.ns.svc` that returns `answer` to every request, and counts its handshakes.
async fn serve(authority: &Authority, answer: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["hook.ns.svc".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority.0).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let handshakes = Arc::new(AtomicUsize::new(0));
    let counter = handshakes.clone();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, counter) = (acceptor.clone(), counter.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                counter.fetch_add(1, Ordering::SeqCst);
                let mut buffer = vec![0; 65536];
                while let Ok(1..) = stream.read(&mut buffer).await {
                    if answer.is_empty() {
                        return;
                    }
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (address, handshakes)
}

fn config(service: &str, bundle: &str) -> Value {
    json!({"service": {"namespace": "ns", "name": service, "path": "/x"}, "caBundle": bundle})
}

async fn call(address: SocketAddr, config: &Value) -> Result<Value, CallError> {
    WebhookClient::new(Arc::new(One(address)))
        .post(config, &json!({"kind": "Review"}), TIMEOUT)
        .await
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"kind\":\"Okay\"}";

#[tokio::test]
async fn only_the_given_bundle_is_trusted() {
    let authority = Authority::new();
    let (address, _) = serve(&authority, OK).await;
    assert_eq!(
        call(address, &config("hook", &authority.bundle())).await,
        Ok(json!({"kind": "Okay"}))
    );
    for bundle in [Authority::new().bundle(), String::new()] {
        let error = call(address, &config("hook", &bundle)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "Post \"https://hook.ns.svc:443/x?timeout=5s\": tls: failed to verify certificate: x509: certificate \
             signed by unknown authority"
        );
    }
}

#[tokio::test]
async fn connections_are_reused_only_for_the_same_bundle() {
    let authority = Authority::new();
    let (address, handshakes) = serve(&authority, OK).await;
    let client = WebhookClient::new(Arc::new(One(address)));
    let body = json!({});
    for _ in 0..3 {
        client
            .post(&config("hook", &authority.bundle()), &body, TIMEOUT)
            .await
            .unwrap();
    }
    assert_eq!(handshakes.load(Ordering::SeqCst), 1);
    let twice = STANDARD.encode(format!("{0}{0}", authority.0.pem()));
    client
        .post(&config("hook", &twice), &body, TIMEOUT)
        .await
        .unwrap();
    assert_eq!(handshakes.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn some_of_many_connections_are_kept() {
    let authority = Authority::new();
    let (address, handshakes) = serve(&authority, OK).await;
    let client = WebhookClient::new(Arc::new(One(address)));
    let (config, body) = (config("hook", &authority.bundle()), json!({}));
    for expected in [40, 40 + 15] {
        let calls = (0..40).map(|_| client.post(&config, &body, TIMEOUT));
        for answer in futures::future::join_all(calls).await {
            answer.unwrap();
        }
        assert_eq!(handshakes.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test]
async fn failures_have_the_messages_of_the_real_server() {
    let authority = Authority::new();
    let bundle = authority.bundle();
    let url = "Post \"https://hook.ns.svc:443/x?timeout=5s\": ";
    for (answer, expected) in [
        ("", format!("{url}EOF")),
        (
            "HTTP/1.1 500 x\r\ncontent-length: 18\r\n\r\n<html>sorry</html>",
            "an error on the server (\"<html>sorry</html>\") has prevented the request from succeeding"
                .to_owned(),
        ),
        (
            "HTTP/1.1 302 x\r\ncontent-length: 0\r\n\r\n",
            "the server responded with the status code 302 but did not return more information".to_owned(),
        ),
    ] {
        let (address, _) = serve(&authority, answer).await;
        assert_eq!(
            call(address, &config("hook", &bundle))
                .await
                .unwrap_err()
                .to_string(),
            expected
        );
    }
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    for (service, expected) in [
        ("gone", "service \"gone\" not found"),
        ("empty", "no endpoints available for service \"empty\""),
        ("hook", "dial tcp 127.0.0.1:1: connect: connection refused"),
    ] {
        let error = call(closed, &config(service, &bundle))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    let junk = call(closed, &config("hook", "anVuaw==")).await.unwrap_err();
    assert_eq!(
        junk.to_string(),
        "unable to load root certificates: unable to parse bytes as PEM block"
    );
}
