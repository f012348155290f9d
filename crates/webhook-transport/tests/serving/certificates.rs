//! Replacing server and client certificates.

use std::{fs, sync::Arc, time::Duration};

use rustls::ClientConfig;
use tempfile::TempDir;
use test_authority::{TestAuthority, TestCertificate};
use tokio::sync::oneshot;
use webhook_transport::{
    CertificateFiles, LiveCertificate,
    server::{ClientAuthority, HttpVersions, ServerOptions, ServerTls},
};

use crate::{
    client::{NAME, client},
    server::{HTTP1, HTTP2, PERIOD, Served, Server, eventually},
};

fn options() -> ServerOptions {
    ServerOptions {
        linger: Duration::ZERO,
        ..ServerOptions::default()
    }
}

/// Calls the server; returns how many client certificates it saw, or `None` if the call failed.
async fn call_server(server: &Server, client: &Arc<ClientConfig>) -> Option<String> {
    let mut sender = server.connect(client).await.ok()?;
    let (_, received) = sender.ask("/").await.ok()?;
    received
        .split_once(' ')
        .map(|(_, certificates)| certificates.to_owned())
}

#[tokio::test]
async fn requests_use_http_1_and_http_2() {
    let served = Served::new();
    let server = Server::start(served.tls(), options()).await;
    for version in [HTTP1, HTTP2] {
        let mut sender = server.connect(&served.client(version)).await.unwrap();
        for _ in 0..3 {
            let (status, received) = sender.ask("/").await.unwrap();
            assert_eq!((status.as_u16(), &*received), (200, "127.0.0.1 0"), "{version}");
        }
    }
    server.stop().await;
    let only_http1 = ServerTls::new(served.certificate(), HttpVersions::Http1).unwrap();
    let server = Server::start(only_http1, options()).await;
    assert!(server.connect(&served.client(HTTP2)).await.is_err());
    assert!(server.connect(&served.client(HTTP1)).await.is_ok());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_reloaded_during_calls() {
    let served = Served::new();
    let second = TestAuthority::new("second");
    let server = Arc::new(Server::start(served.tls(), options()).await);
    let mut callers = Vec::new();
    for version in [HTTP1, HTTP2] {
        // Trusts both CAs, as a client does during a rotation.
        let client = client(&[&served.authority, &second], None, &[version]);
        for is_kept in [true, false] {
            let (server, client) = (server.clone(), client.clone());
            let (stop, mut stopped) = oneshot::channel::<()>();
            let calls = tokio::spawn(async move {
                let mut sender = server.connect(&client).await.unwrap();
                let mut calls = 0_u32;
                while stopped.try_recv().is_err() {
                    if !is_kept {
                        sender = server.connect(&client).await.unwrap();
                    }
                    sender.ask("/").await.unwrap();
                    calls += 1;
                }
                calls
            });
            callers.push((stop, calls));
        }
    }
    let only = |authority| client(&[authority], None, &[HTTP1]);
    for (version, authority) in (2..).zip([&served.authority, &second, &served.authority, &second]) {
        authority.server(&[NAME]).mount(served.folder.path(), version);
        eventually("the new certificate is served", async || {
            server.handshake(&only(authority)).await.is_ok()
        })
        .await;
    }
    for (stop, calls) in callers {
        stop.send(()).unwrap();
        assert!(calls.await.unwrap() > 0);
    }
    assert!(server.handshake(&only(&served.authority)).await.is_err());
}

#[tokio::test]
async fn invalid_files_keep_the_certificate() {
    let served = Served::new();
    let server = Server::start(served.tls(), options()).await;
    let stranger = TestAuthority::new("stranger").server(&[NAME]);
    let folder = served.folder.path();
    for (file, content) in [
        ("tls.crt", &stranger.certificate),
        ("tls.crt", &"garbage".to_owned()),
        ("tls.key", &stranger.key),
        ("tls.key", &String::new()),
    ] {
        fs::write(folder.join(file), content).unwrap();
        tokio::time::sleep(PERIOD * 5).await;
        assert!(server.handshake(&served.client(HTTP1)).await.is_ok(), "{file}");
    }
    fs::remove_file(folder.join("tls.crt")).unwrap();
    tokio::time::sleep(PERIOD * 5).await;
    assert!(server.handshake(&served.client(HTTP1)).await.is_ok());
    stranger.mount(folder, 2);
    fs::write(folder.join("tls.crt"), &stranger.certificate).unwrap();
    eventually("the next good certificate is served", async || {
        server.handshake(&served.client(HTTP1)).await.is_err()
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_may_be_created_later() {
    let (authority, folder) = (TestAuthority::new("first"), TempDir::new().unwrap());
    let files = CertificateFiles::in_folder(folder.path());
    assert!(LiveCertificate::follow(files.clone(), PERIOD).is_err());
    let certificate = LiveCertificate::wait_for(files, PERIOD);
    let tls = ServerTls::new(certificate, HttpVersions::Http1And2).unwrap();
    let server = Server::start(tls, options()).await;
    let client = client(&[&authority], None, &[HTTP2]);
    assert!(server.handshake(&client).await.is_err());
    authority.server(&[NAME]).mount(folder.path(), 1);
    eventually("the certificate is served", async || {
        server.handshake(&client).await.is_ok()
    })
    .await;
    server.stop().await;
}

/// The results for a client without a certificate, and for one with each identity.
async fn answers(server: &Server, served: &Served, identities: &[TestCertificate]) -> Vec<Option<String>> {
    let identities = [None].into_iter().chain(identities.iter().map(Some));
    let mut answers = Vec::new();
    for identity in identities {
        for version in [HTTP1, HTTP2] {
            let client = client(&[&served.authority], identity, &[version]);
            answers.push(call_server(server, &client).await);
        }
    }
    answers
}

#[tokio::test]
async fn client_certificates_are_verified_with_the_client_ca() {
    let served = Served::new();
    let file = served.folder.path().join("ca.crt");
    let [first, second] = ["first clients", "second clients"].map(TestAuthority::new);
    let identities = [first.client(), second.client()];
    let (refused, anonymous, known) = (None, Some("0"), Some("1"));
    for (authority, without) in [
        (ClientAuthority::required(&file), refused),
        (ClientAuthority::optional(&file), anonymous),
    ] {
        fs::write(&file, first.pem()).unwrap();
        let tls = ServerTls::with_client_authority(
            served.certificate(),
            HttpVersions::Http1And2,
            authority.clone(),
            PERIOD,
        );
        let server = Server::start(tls.unwrap(), options()).await;
        let is_answered = async |expected: [Option<&str>; 3]| {
            let answers = answers(&server, &served, &identities).await;
            let expected = expected.iter().flat_map(|answer| [*answer; 2]);
            answers.iter().map(Option::as_deref).eq(expected)
        };
        assert!(is_answered([without, known, refused]).await, "{authority:?}");
        for (content, clients) in [
            (format!("{}{}", first.pem(), second.pem()), [known, known]),
            (second.pem().clone(), [refused, known]),
            (String::new(), [refused, known]),
        ] {
            fs::write(&file, &content).unwrap();
            let expected = [without, clients[0], clients[1]];
            eventually("the new CAs apply", async || is_answered(expected).await).await;
        }
        tokio::time::sleep(PERIOD * 5).await;
        assert!(is_answered([without, refused, known]).await);
        server.stop().await;
    }
    fs::remove_file(&file).unwrap();
    let missing = ClientAuthority::required(&file);
    let error = ServerTls::with_client_authority(served.certificate(), HttpVersions::Http1, missing, PERIOD)
        .unwrap_err();
    assert!(error.to_string().contains("ca.crt"), "{error}");
}

#[tokio::test]
async fn a_distrusted_client_cannot_resume_a_session() {
    let served = Served::new();
    let file = served.folder.path().join("ca.crt");
    let [first, second] = ["first clients", "second clients"].map(TestAuthority::new);
    fs::write(&file, first.pem()).unwrap();
    let clients = ClientAuthority::required(&file);
    let tls =
        ServerTls::with_client_authority(served.certificate(), HttpVersions::Http1, clients, PERIOD).unwrap();
    let server = Server::start(tls, options()).await;
    // Stores sessions for resumption.
    let client = client(&[&served.authority], Some(&first.client()), &[HTTP1]);
    let mut kept = server.connect(&client).await.unwrap();
    kept.ask("/").await.unwrap();
    fs::write(&file, second.pem()).unwrap();
    eventually("the client is refused", async || {
        call_server(&server, &client).await.is_none()
    })
    .await;
    kept.ask("/").await.expect("an open connection stays open");
    server.stop().await;
}
