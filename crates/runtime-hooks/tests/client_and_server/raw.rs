//! HTTP requests as raw bytes over TLS, which the client of this crate would never send.

use std::{sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use test_authority::TestAuthority;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::extension::Extension;

const PATH: &str = "/x/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/says";

const PATIENCE: Duration = Duration::from_secs(20);

struct Raw {
    authority: TestAuthority,
    server: Extension,
}

impl Raw {
    async fn new() -> Self {
        let authority = TestAuthority::new("first");
        let server = Extension::start(&authority, None).await;
        Self { authority, server }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(self.authority.pem().as_bytes());
        roots.add(certificate.unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.server.address).await.unwrap();
        let name = ServerName::try_from("extension.system.svc").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap()
    }

    /// Sends bytes and returns everything received until the server closes the connection.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        stream.flush().await.unwrap();
        rest(&mut stream).await
    }
}

/// Reads until the connection is closed.
async fn rest(stream: &mut TlsStream<TcpStream>) -> String {
    let mut received = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut received)).await;
    read.expect("the server closes the connection").ok();
    String::from_utf8_lossy(&received).into_owned()
}

/// A request that asks the server to close the connection.
fn request(version: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut request = format!("POST {PATH} HTTP/{version}\r\nHost: x\r\nConnection: close\r\n");
    headers
        .iter()
        .for_each(|header| request.extend([*header, "\r\n"]));
    request.push_str("\r\n");
    [request.as_bytes(), body].concat()
}

/// The status of each response, and whether its body reports success.
fn answers(received: &str) -> Vec<(u16, bool)> {
    received
        .split("HTTP/1.")
        .skip(1)
        .map(|answer| {
            (
                answer[2..5].parse().unwrap(),
                answer.contains(r#""status":"Success""#),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_body_may_use_any_http_framing() {
    let raw = Raw::new().await;
    let length = "Content-Length: 2";
    let chunked = "Transfer-Encoding: chunked";
    for (bytes, expected) in [
        (request("1.1", &[length], b"{}"), &[(200, true)][..]),
        (request("1.0", &[length], b"{}"), &[(200, true)]),
        (
            request("1.1", &[chunked], b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"),
            &[(200, true)],
        ),
        (
            request(
                "1.1",
                &[chunked],
                b"2;extension=1\r\n{}\r\n0\r\nTrailer: 1\r\n\r\n",
            ),
            &[(200, true)],
        ),
        (
            request("1.1", &["Expect: 100-continue", length], b"{}"),
            &[(100, false), (200, true)],
        ),
        (request("1.1", &[], b""), &[(200, false)]),
        // Requests with conflicting lengths must not be interpreted in two ways.
        (
            request("1.1", &[length, "Content-Length: 3"], b"{}}"),
            &[(400, false)],
        ),
        (
            request("1.1", &[chunked, "Transfer-Encoding: x"], b"2\r\n{}\r\n0\r\n\r\n"),
            &[(400, false)],
        ),
        (request("1.1", &["Content-Length: -1"], b"{}"), &[(400, false)]),
        (request("1.1", &[chunked], b"g\r\n"), &[(200, false)]),
        (
            request("1.1", &["Content-Encoding: gzip", length], b"\x1f\x8b"),
            &[(200, false)],
        ),
    ] {
        let received = raw.exchange(&bytes).await;
        assert_eq!(
            answers(&received),
            expected,
            "{}\n{received}",
            String::from_utf8_lossy(&bytes)
        );
    }
}

#[tokio::test]
async fn expect_100_continue_is_answered() {
    let raw = Raw::new().await;
    let mut stream = raw.connect().await;
    let head = request("1.1", &["Expect: 100-continue", "Content-Length: 2"], b"");
    stream.write_all(&head).await.unwrap();
    let mut told = [0; 25];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut told)).await;
    read.expect("the server sends 100 Continue").unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"{}").await.unwrap();
    assert_eq!(answers(&rest(&mut stream).await), [(200, true)]);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let raw = Raw::new().await;
    let one = |body: &str, last: &str| {
        let length = body.len();
        format!("POST {PATH} HTTP/1.1\r\nHost: x\r\n{last}Content-Length: {length}\r\n\r\n{body}")
    };
    let version = |version: usize| format!(r#"{{"toKubernetesVersion": "v{version}."}}"#);
    let mut requests: String = (0..50).map(|number| one(&version(number), "")).collect();
    requests += &one("[", "");
    requests += &one(&version(50), "Connection: close\r\n");
    let received = raw.exchange(requests.as_bytes()).await;
    let statuses: Vec<_> = answers(&received)
        .into_iter()
        .map(|(_, is_success)| is_success)
        .collect();
    assert_eq!(statuses, [vec![true; 50], vec![false, true]].concat());
    let places: Vec<_> = (0..=50)
        .map(|number| received.find(&format!("v{number}. ")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{received}");
}

#[tokio::test]
async fn a_truncated_body_is_rejected() {
    let raw = Raw::new().await;
    let mut stream = raw.connect().await;
    stream
        .write_all(&request("1.1", &["Content-Length: 100"], b"{}"))
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let received = rest(&mut stream).await;
    assert!(
        answers(&received).iter().all(|(_, is_success)| !is_success),
        "{received}"
    );
    assert_eq!(
        answers(&raw.exchange(&request("1.1", &["Content-Length: 2"], b"{}")).await),
        [(200, true)]
    );
}

#[tokio::test]
async fn invalid_http_reaches_no_handler() {
    let raw = Raw::new().await;
    let headers = "A: b\r\n".repeat(1000);
    let long = "a".repeat(1 << 20);
    for bytes in [
        "\r\n\r\n\r\nx\r\n\r\n".to_owned(),
        "POST\r\n\r\n".to_owned(),
        format!("POST {PATH} HTTP/9.9\r\n\r\n"),
        format!("POST {PATH} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"),
        format!("POST {PATH}?{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("POST {PATH} HTTP/1.1\r\nHost: x\r\nA\u{0}: b\r\n\r\n"),
    ] {
        let received = raw.exchange(bytes.as_bytes()).await;
        let shown = &bytes[..bytes.len().min(80)];
        assert!(
            answers(&received)
                .iter()
                .all(|(status, _)| (400..500).contains(status)),
            "{shown}: {received}"
        );
    }
    assert_eq!(
        answers(&raw.exchange(&request("1.1", &["Content-Length: 2"], b"{}")).await),
        [(200, true)]
    );
}
