//! Replacing certificates and CAs during calls.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use runtime_hooks::{
    client::HookClient,
    server::webhook_transport::{CertificateFiles, LiveCertificate},
};
use tempfile::TempDir;
use test_authority::TestAuthority;
use tokio::task::JoinSet;

use crate::extension::{Extension, PERIOD, call, config, issue};

/// Concurrent callers and their number of calls.
struct Callers {
    tasks: JoinSet<()>,
    calls: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Callers {
    /// Starts callers that call continuously; no call may fail.
    fn start(client: &HookClient) -> Self {
        let mut callers = Self {
            tasks: JoinSet::new(),
            calls: Arc::default(),
            stop: Arc::default(),
        };
        for _ in 0..4 {
            let (client, calls, stop) = (client.clone(), callers.calls.clone(), callers.stop.clone());
            callers.tasks.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    call(&client, "says").await.unwrap();
                    calls.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
        callers
    }

    /// Waits for enough calls that the server reloads its files in between.
    async fn wait_for_more_calls(&self) {
        tokio::time::sleep(PERIOD * 5).await;
        let enough = self.calls.load(Ordering::SeqCst) + 20;
        while self.calls.load(Ordering::SeqCst) < enough && !self.tasks.is_empty() {
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn finish(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }
}

/// Reports whether a call of a new client succeeds.
async fn is_answered(server: &Extension, ca_bundle: &str, identity: Option<LiveCertificate>) -> bool {
    let client = server.unregistered_client(identity);
    client.discover(&config(ca_bundle)).await.is_ok()
}

async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        if check().await {
            return;
        }
        tokio::time::sleep(PERIOD).await;
    }
    panic!("timed out: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_succeed_during_a_server_ca_rotation() {
    let [first, second] = ["first", "second"].map(TestAuthority::new);
    let server = Extension::start(&first, None).await;
    let client = server.client(&first.pem(), None).await;
    let handlers = client.discover(&config(&first.pem())).await.unwrap().handlers;
    let register = |ca_bundle: &str| {
        let registered = client.registry().register(config(ca_bundle), handlers.clone());
        registered.unwrap();
    };
    let callers = Callers::start(&client);
    for (old, new) in [(&first, &second), (&second, &first)] {
        register(&format!("{}{}", old.pem(), new.pem()));
        callers.wait_for_more_calls().await;
        issue(new, server.folder.path());
        eventually("the new certificate is served", async || {
            is_answered(&server, &new.pem(), None).await
        })
        .await;
        callers.wait_for_more_calls().await;
        register(&new.pem());
        callers.wait_for_more_calls().await;
        assert!(!is_answered(&server, &old.pem(), None).await);
    }
    callers.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_succeed_during_a_client_ca_rotation() {
    let (authority, [first, second]) = (
        TestAuthority::new("servers"),
        ["first", "second"].map(TestAuthority::new),
    );
    let server = Extension::start(&authority, Some(&first)).await;
    let ca_bundle = authority.pem();
    let issue_to = |authority: &TestAuthority, folder: &Path| {
        let issued = authority.client();
        issued.write(folder);
    };
    let identity = |authority: &TestAuthority| {
        let folder = TempDir::new().unwrap();
        issue_to(authority, folder.path());
        folder
    };
    let certificate_from = |authority: &TestAuthority| {
        let folder = identity(authority);
        LiveCertificate::load(&CertificateFiles::in_folder(folder.path())).ok()
    };
    assert!(!is_answered(&server, &ca_bundle, None).await);
    assert!(!is_answered(&server, &ca_bundle, certificate_from(&second)).await);
    let folder = identity(&first);
    let files = CertificateFiles::in_folder(folder.path());
    let presented = LiveCertificate::follow(files, PERIOD).unwrap();
    let client = server.client(&ca_bundle, Some(presented)).await;
    assert_eq!(call(&client, "says").await, Ok("v2 green 1".into()));
    let callers = Callers::start(&client);
    let trust = |pem: String| fs::write(server.folder.path().join("ca.crt"), pem).unwrap();
    trust(format!("{}{}", first.pem(), second.pem()));
    eventually("both CAs are trusted", async || {
        is_answered(&server, &ca_bundle, certificate_from(&second)).await
    })
    .await;
    callers.wait_for_more_calls().await;
    issue_to(&second, folder.path());
    callers.wait_for_more_calls().await;
    trust(second.pem());
    eventually("the first CA is no longer trusted", async || {
        !is_answered(&server, &ca_bundle, certificate_from(&first)).await
    })
    .await;
    callers.wait_for_more_calls().await;
    callers.finish().await;
}
