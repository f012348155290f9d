//! Servers that send raw bytes over TLS.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use runtime_hooks::discovery::{FailurePolicy, Handler};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::peer::{Issued, Names, call, client, config, handler};

/// What a server does after its last byte.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Closes the TLS session and the connection.
    Close,
    /// Drops the connection.
    Drop,
    /// Repeats its bytes without end.
    Again,
}

const SUCCESS: &str = r#"{"status": "Success", "message": "a"}"#;

/// A server that answers each request with `bytes`.
async fn start(issued: &Issued, bytes: Vec<u8>, end: End) -> SocketAddr {
    let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (tls, bytes) = (tls.clone(), bytes.clone());
            tokio::spawn(async move {
                let mut stream = tls.accept(stream).await?;
                let mut asked = vec![0; 1 << 16];
                while !asked.is_empty() && stream.read(&mut asked).await? == asked.len() {}
                stream.write_all(&bytes).await?;
                stream.flush().await?;
                match end {
                    End::Close => stream.shutdown().await?,
                    End::Drop => {}
                    End::Again => loop {
                        stream.write_all(&bytes).await?;
                    },
                }
                Ok::<_, std::io::Error>(())
            });
        }
    });
    address
}

/// Calls a handler of such a server; returns its message or the error.
async fn call_handler(bytes: Vec<u8>, end: End) -> Result<String, String> {
    let issued = Issued::new("ext1");
    let address = start(&issued, bytes, end).await;
    let client = client(Names([("ext1.system.svc".to_owned(), address)].into()));
    let brief = Handler {
        timeout_seconds: Some(5),
        ..handler("x", FailurePolicy::Fail)
    };
    client
        .registry()
        .register(config("ext1", "ext1", &issued.ca_bundle), vec![brief])
        .unwrap();
    call(&client, "x.ext1", false)
        .await
        .map(|response| response.message)
}

#[tokio::test]
async fn an_answer_may_use_any_http_framing() {
    let length = SUCCESS.len();
    for (bytes, end) in [
        (format!("HTTP/1.0 200 OK\r\n\r\n{SUCCESS}"), End::Close),
        (
            format!("HTTP/1.0 200\r\nContent-Length: {length}\r\n\r\n{SUCCESS}"),
            End::Drop,
        ),
        (
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{SUCCESS}"),
            End::Close,
        ),
        (
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{length:x};a=b\r\n{SUCCESS}\r\n0\r\nA: b\r\n\r\n"
            ),
            End::Drop,
        ),
        (
            format!(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{SUCCESS}"
            ),
            End::Drop,
        ),
        (
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{SUCCESS}HTTP/1.1 500 No\r\n\r\n"),
            End::Close,
        ),
    ] {
        assert_eq!(
            call_handler(bytes.clone().into(), end).await,
            Ok("a".into()),
            "{bytes}"
        );
    }
}

#[tokio::test]
async fn an_invalid_answer_is_an_error_in_time() {
    let length = SUCCESS.len();
    for (bytes, end) in [
        (String::new(), End::Close),
        (String::new(), End::Drop),
        ("SSH-2.0-OpenSSH_9.9\r\n".to_owned(), End::Close),
        ("HTTP/1.1 200".to_owned(), End::Close),
        ("HTTP/1.1 200 OK\r\nA: b\r\n".to_owned(), End::Again),
        ("A: b\r\n".to_owned(), End::Again),
        ("HTTP/1.1 100 Continue\r\n\r\n".to_owned(), End::Again),
        (
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{SUCCESS}",
                length + 1
            ),
            End::Close,
        ),
        (
            format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{SUCCESS}"),
            End::Close,
        ),
        (
            format!("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{SUCCESS}"),
            End::Close,
        ),
        (
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{SUCCESS}\r\n"),
            End::Close,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n".to_owned(),
            End::Close,
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n".to_owned(),
            End::Close,
        ),
        (
            format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
                "\u{1f}\u{8}"
            ),
            End::Close,
        ),
    ] {
        let started = Instant::now();
        call_handler(bytes.clone().into(), end).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(8), "{bytes:?} {end:?}");
    }
}
