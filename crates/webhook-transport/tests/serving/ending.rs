//! How a server ends: with what is under way, and soon.

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
async fn what_is_under_way_is_answered() {
    for version in [HTTP1, HTTP2] {
        let served = Served::new();
        let mut server = Server::start(served.tls(), lingering(Duration::ZERO)).await;
        let mut idle = server.connect(&served.client(version)).await.unwrap();
        idle.ask("/").await.unwrap();
        let mut sender = server.connect(&served.client(version)).await.unwrap();
        let under_way = tokio::spawn(async move { (sender.ask("/slow").await, sender) });
        tokio::time::sleep(SHORT).await;
        server.tell_to_end();
        eventually("the idle one is closed", async || idle.is_closed()).await;
        let (answer, sender) = under_way.await.unwrap();
        assert_eq!(answer.unwrap().0.as_u16(), 200, "{version}");
        eventually("the busy one is closed", async || sender.is_closed()).await;
        assert!(TcpStream::connect(server.address).await.is_err());
        server.ended().await;
    }
}

#[tokio::test]
async fn who_still_knows_the_address_is_served_for_a_while() {
    for version in [HTTP1, HTTP2] {
        let served = Served::new();
        let mut server = Server::start(served.tls(), lingering(SHORT * 10)).await;
        let client = served.client(version);
        let mut kept = server.connect(&client).await.unwrap();
        kept.ask("/").await.unwrap();
        server.tell_to_end();
        tokio::time::sleep(SHORT).await;
        kept.ask("/").await.expect("a connection is kept");
        if version == HTTP1 {
            eventually("it is told to leave", async || kept.is_closed()).await;
        }
        let mut new = server.connect(&client).await.unwrap();
        new.ask("/").await.expect("a connection is accepted");
        server.ended().await;
        eventually("all are closed", async || kept.is_closed() && new.is_closed()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_that_began_before_the_end() {
    for version in [HTTP1, HTTP2] {
        let served = Served::new();
        let mut server = Server::start(served.tls(), lingering(Duration::ZERO)).await;
        let mut calls = Vec::new();
        for _ in 0..40 {
            let mut sender = server.connect(&served.client(version)).await.unwrap();
            calls.push(tokio::spawn(async move { sender.ask("/slow").await }));
        }
        tokio::time::sleep(SHORT).await;
        server.tell_to_end();
        for call in calls {
            assert!(call.await.unwrap().is_ok(), "{version}");
        }
        server.ended().await;
    }
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_hold_the_server() {
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
        server.tell_to_end();
        server.ended().await;
        assert!(under_way.await.unwrap().is_err(), "{version}");
    }
}

#[tokio::test]
async fn a_server_that_is_dropped_drops_its_connections() {
    let served = Served::new();
    let server = Server::start(served.tls(), ServerOptions::default()).await;
    let mut sender = server.connect(&served.client(HTTP1)).await.unwrap();
    sender.ask("/").await.unwrap();
    let address = server.address;
    server.task.abort();
    eventually("it is closed", async || sender.is_closed()).await;
    eventually("nobody listens", async || {
        TcpStream::connect(address).await.is_err()
    })
    .await;
}
