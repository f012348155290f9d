//! Proxies in environment variables, which are set for a child process.

use std::{
    io,
    net::SocketAddr,
    process::{Command, Output},
    sync::Arc,
};

use parking_lot::Mutex;
use runtime_hooks::{
    Catalog, Registry,
    client::HookClient,
    server::webhook_transport::client::{Transport, TransportOptions},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use crate::peer::{Answer, Names, Peer, config};

/// The environment variables of the child process: the server's address and CA.
const ADDRESS: &str = "CONTRACT_ADDRESS";
const CA_BUNDLE: &str = "CONTRACT_CA_BUNDLE";

/// A proxy that forwards everything to one server and records the requested hosts.
async fn proxy(listener: TcpListener, to: SocketAddr, asked: Arc<Mutex<Vec<String>>>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let mut stream = BufReader::new(stream);
        let mut lines = (&mut stream).lines();
        let first = lines.next_line().await?.unwrap_or_default();
        while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
        asked.lock().push(first);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        tokio::spawn(async move {
            let mut server = TcpStream::connect(to).await?;
            copy_bidirectional(&mut stream, &mut server).await
        });
    }
}

/// Calls the server in a child process with these environment variables.
async fn call_with(peer: &Peer, environment: [(&'static str, String); 2]) -> Output {
    let mut process = Command::new(std::env::current_exe().unwrap());
    for theirs in ["https_proxy", "no_proxy", "all_proxy", "ALL_PROXY"] {
        process.env_remove(theirs);
    }
    process
        .args(["--exact", "proxies::call_in_child_process", "--ignored"])
        .env(ADDRESS, peer.address.to_string())
        .env(CA_BUNDLE, &peer.ca_bundle)
        .envs(environment);
    tokio::task::spawn_blocking(move || process.output())
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_of_the_environment_are_used_with_exceptions() {
    let peer = Peer::start("ext1", Answer::json(&json!({"status": "Success"}))).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::<Mutex<Vec<String>>>::default();
    tokio::spawn(proxy(listener, peer.address, asked.clone()));
    for (excepted, by_proxy) in [("", 1), ("example.com,.svc", 0)] {
        asked.lock().clear();
        let environment = [("HTTPS_PROXY", url.clone()), ("NO_PROXY", excepted.to_owned())];
        let output = call_with(&peer, environment).await;
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        let asked = asked.lock().clone();
        assert_eq!(asked.len(), by_proxy, "{excepted:?}: {asked:?}");
        assert!(
            asked
                .iter()
                .all(|asked| asked == "CONNECT ext1.system.svc:443 HTTP/1.1"),
            "{asked:?}"
        );
    }
    assert_eq!(peer.hits(), 2);
}

#[tokio::test]
#[ignore = "is run by the test above"]
async fn call_in_child_process() {
    let variable = |name| std::env::var(name).unwrap();
    let address = variable(ADDRESS).parse().unwrap();
    let names = Names([("ext1.system.svc".to_owned(), address)].into());
    let transport = Transport::new(TransportOptions {
        resolver: Arc::new(names),
        ..TransportOptions::default()
    });
    let client = HookClient::new(
        Arc::new(Catalog::cluster_api()),
        Arc::new(Registry::listed()),
        transport,
    );
    client
        .discover(&config("ext1", "ext1", &variable(CA_BUNDLE)))
        .await
        .unwrap();
}
