//! Limits and timeouts of connections.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use webhook_transport::server::ServerOptions;

use crate::server::{HTTP1, HTTP2, PATIENCE, Served, Server, eventually};

const SHORT: Duration = Duration::from_millis(50);

fn patient() -> ServerOptions {
    ServerOptions {
        linger: Duration::ZERO,
        ..ServerOptions::default()
    }
}

/// Waits until the server has closed a connection.
async fn wait_until_closed(stream: &mut (impl AsyncReadExt + Unpin)) {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    // The server may close the connection with or without an error.
    drop(read.expect("the connection is closed"));
}

#[tokio::test]
async fn a_client_without_handshake_is_disconnected() {
    let served = Served::new();
    let options = ServerOptions {
        handshake_timeout: SHORT,
        ..patient()
    };
    let server = Server::start(served.tls(), options).await;
    // Nothing, the beginning of a TLS record, and bytes that are not TLS.
    for sent in [&b""[..], &[0x16, 3, 1, 0], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        wait_until_closed(&mut stream).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_without_request_is_disconnected() {
    let served = Served::new();
    let options = ServerOptions {
        header_timeout: Some(SHORT),
        ..patient()
    };
    let server = Server::start(served.tls(), options).await;
    let beginning_of_http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for (version, sent) in [
        (HTTP1, &b""[..]),
        (HTTP1, b"POST / HTTP/1.1\r\nhost: a\r\n"),
        (HTTP2, b""),
        (HTTP2, b"PRI * "),
        (HTTP2, beginning_of_http2),
    ] {
        let mut stream = server.handshake(&served.client(version)).await.unwrap();
        stream.write_all(sent).await.unwrap();
        wait_until_closed(&mut stream).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn an_idle_client_is_disconnected() {
    let served = Served::new();
    let options = ServerOptions {
        idle_timeout: Some(SHORT),
        ..patient()
    };
    let server = Server::start(served.tls(), options).await;
    for version in [HTTP1, HTTP2] {
        let mut sender = server.connect(&served.client(version)).await.unwrap();
        // A slow request is not idle.
        sender.ask("/slow").await.unwrap();
        eventually("the connection is closed", async || sender.is_closed()).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_evicted_for_a_new_one() {
    let served = Served::new();
    let options = ServerOptions {
        connections: 2,
        ..patient()
    };
    let server = Server::start(served.tls(), options).await;
    let client = served.client(HTTP2);
    let mut busy = server.connect(&client).await.unwrap();
    let mut idle = server.connect(&client).await.unwrap();
    idle.ask("/").await.unwrap();
    let busy = tokio::spawn(async move { busy.ask("/slow").await });
    tokio::time::sleep(SHORT).await;
    let mut next = server.connect(&client).await.unwrap();
    next.ask("/").await.unwrap();
    assert!(busy.await.unwrap().is_ok());
    eventually("the idle connection is closed", async || idle.is_closed()).await;
    server.stop().await;
}

#[tokio::test]
async fn a_panic_closes_only_its_connection() {
    let served = Served::new();
    let server = Server::start(served.tls(), patient()).await;
    for version in [HTTP1, HTTP2] {
        let client = served.client(version);
        let mut sender = server.connect(&client).await.unwrap();
        assert!(sender.ask("/panic").await.is_err());
        let mut sender = server.connect(&client).await.unwrap();
        assert!(sender.ask("/").await.is_ok());
    }
    server.stop().await;
}
