//! The guard as clients find it: who means no good, and who does.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::{TlsConnector, client::TlsStream};
use windlass_scenarios::{
    request::{self, text},
    sample,
    steps::{VALIDATING, get},
    test_cluster::TestCluster,
};

use super::calls::SharedCalls;

/// The guard's name.
pub(super) const HOST: &str = "windlass.windlass-system.svc";

/// The guard's configuration.
const CONFIGURATION: &str = "windlass";

/// How many addresses clients come from.
const CLIENTS: u32 = 50;

/// How far they are from the first, behind those at which guards answer: the API server's own connections come from there.
const DISTANCE: u32 = 200;

/// How often the API server is asked to do what the guard is to deny.
const PAUSE: Duration = Duration::from_secs(1);

/// Where the guard answers, and how to reach it.
pub(super) struct GuardPort {
    address: SocketAddr,
    /// The first address that clients may come from.
    first: Ipv4Addr,
    /// The path of its AdmissionReviews.
    pub(super) path: String,
    connector: TlsConnector,
}

impl GuardPort {
    /// The guard at `address`, whose configuration has its trust bundle.
    pub(super) async fn find(cluster: &TestCluster, address: SocketAddr) -> anyhow::Result<Self> {
        let path = format!("{VALIDATING}/{CONFIGURATION}");
        let found = get(&cluster.client, &path).await?.context("there is no guard")?;
        let bundle = STANDARD.decode(text(&found, "/webhooks/0/clientConfig/caBundle"))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&bundle) {
            roots.add(certificate?)?;
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            address,
            first: cluster.backing.address(),
            path: text(&found, "/webhooks/0/clientConfig/service/path").to_owned(),
            connector: TlsConnector::from(Arc::new(tls)),
        })
    }

    /// A connection of the client with a number, from an address that is not that of the API server.
    pub(super) async fn connect(&self, number: u32) -> anyhow::Result<TcpStream> {
        let from = Ipv4Addr::from_bits(self.first.to_bits() + DISTANCE + number % CLIENTS);
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((from, 0)))?;
        Ok(socket.connect(self.address).await?)
    }

    /// TLS over a connection.
    pub(super) async fn secure(&self, stream: TcpStream) -> anyhow::Result<TlsStream<TcpStream>> {
        Ok(self
            .connector
            .connect(ServerName::try_from(HOST)?, stream)
            .await?)
    }
}

/// Asks the API server for ever for what the guard is to deny, without changing anything: nobody denies it where the guard does not
/// answer.
pub(super) async fn ask(client: Client, calls: SharedCalls) {
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let path = format!("{}?dryRun=All", sample::DEFINITION);
    loop {
        let sent = Instant::now();
        let answer = request::send(&client, "PATCH", &path, Some(&none)).await;
        match answer {
            Ok(answer) if answer.is_denied() => calls.lock().succeeded(sent.elapsed()),
            // Somebody has written it at the same time.
            Ok(answer) if answer.code == 409 => {}
            Ok(answer) => calls.lock().failed(&format!("not denied: {answer}")),
            Err(error) => calls.lock().failed(&format!("{error:#}")),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
