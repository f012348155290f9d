//! Graceful shutdown.

use std::time::Duration;

use tokio::net::TcpStream;
use webhook_transport::server::ServerOptions;

use crate::server::{HTTP1, HTTP2, Served, Server, eventually};

const SHORT: Duration = Duration::from_millis(100);

fn lingering(linger: Duration) -> ServerOptions {
    ServerOptions {
        linger,
        ..ServerOptions::default()
    }
}

#[tokio::test]
async fn active_requests_are_finished() {
    for version in [HTTP1, HTTP2] {
        let served = Served::new();
        let mut server = Server::start(served.tls(), lingering(Duration::ZERO)).await;
        let mut idle = server.connect(&served.client(version)).await.unwrap();
        idle.ask("/").await.unwrap();
        let mut sender = server.connect(&served.client(version)).await.unwrap();
        let under_way = tokio::spawn(async move { (sender.ask("/slow").await, sender) });
        tokio::time::sleep(SHORT).await;
        server.start_shutdown();
        eventually("the idle connection is closed", async || idle.is_closed()).await;
        let (answer, sender) = under_way.await.unwrap();
        assert_eq!(answer.unwrap().0.as_u16(), 200, "{version}");
        eventually("the busy connection is closed", async || sender.is_closed()).await;
        assert!(TcpStream::connect(server.address).await.is_err());
        server.wait_for_end().await;
    }
}

#[tokio::test]
async fn the_linger_time_serves_late_clients() {
    for version in [HTTP1, HTTP2] {
        let served = Served::new();
        let mut server = Server::start(served.tls(), lingering(SHORT * 10)).await;
        let client = served.client(version);
        let mut kept = server.connect(&client).await.unwrap();
        kept.ask("/").await.unwrap();
        server.start_shutdown();
        tokio::time::sleep(SHORT).await;
        kept.ask("/").await.expect("an idle connection stays open");
        if version == HTTP1 {
            eventually("the client is told to close the connection", async || {
                kept.is_closed()
            })
            .await;
        }
        let mut new = server.connect(&client).await.unwrap();
        new.ask("/").await.expect("a new connection is accepted");
        server.wait_for_end().await;
        eventually("all connections are closed", async || {
            kept.is_closed() && new.is_closed()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_started_before_shutdown_succeed() {
    for version in [HTTP1, HTTP2] {
        let served = Served::new();
        let mut server = Server::start(served.tls(), lingering(Duration::ZERO)).await;
        let mut calls = Vec::new();
        for _ in 0..40 {
            let mut sender = server.connect(&served.client(version)).await.unwrap();
            calls.push(tokio::spawn(async move { sender.ask("/slow").await }));
        }
        tokio::time::sleep(SHORT).await;
        server.start_shutdown();
        for call in calls {
            assert!(call.await.unwrap().is_ok(), "{version}");
        }
        server.wait_for_end().await;
    }
}

#[tokio::test]
async fn an_endless_request_does_not_block_shutdown() {
    for version in [HTTP1, HTTP2] {
        let served = Served::new();
        let options = ServerOptions {
            drain_timeout: Some(SHORT),
            ..lingering(Duration::ZERO)
        };
        let mut server = Server::start(served.tls(), options).await;
        let mut sender = server.connect(&served.client(version)).await.unwrap();
        let under_way = tokio::spawn(async move { sender.ask("/never").await });
        tokio::time::sleep(SHORT).await;
        server.start_shutdown();
        server.wait_for_end().await;
        assert!(under_way.await.unwrap().is_err(), "{version}");
    }
}

#[tokio::test]
async fn dropping_a_server_drops_its_connections() {
    let served = Served::new();
    let server = Server::start(served.tls(), ServerOptions::default()).await;
    let mut sender = server.connect(&served.client(HTTP1)).await.unwrap();
    sender.ask("/").await.unwrap();
    let address = server.address;
    server.task.abort();
    eventually("the connection is closed", async || sender.is_closed()).await;
    eventually("the listener is closed", async || {
        TcpStream::connect(address).await.is_err()
    })
    .await;
}
