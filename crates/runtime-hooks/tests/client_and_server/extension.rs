//! A hook server on the loopback interface and clients for it.

use std::{
    collections::BTreeMap, fs, future::ready, io, net::Ipv4Addr, net::SocketAddr, path::Path, sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use runtime_hooks::{
    Catalog, Registry,
    client::{CallOptions, HookClient},
    cluster_api::{BeforeClusterUpgrade, BeforeClusterUpgradeRequest, BeforeClusterUpgradeResponse},
    discovery::FailurePolicy,
    registry::ExtensionConfig,
    response::ResponseStatus,
    server::{
        HandlerOptions, HookServer,
        webhook_transport::{
            CertificateFiles, LiveCertificate, ServerReference,
            client::{Resolve, Transport, TransportOptions},
            server::{ClientAuthority, ConnectedClient, HttpVersions, ServerOptions, ServerTls},
        },
    },
};
use serde_json::json;
use tempfile::TempDir;
use test_authority::TestAuthority;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// How often the server reloads its files.
pub(crate) const PERIOD: Duration = Duration::from_millis(10);

/// The duration of the handler `slow`.
pub(crate) const SLOW: Duration = Duration::from_millis(300);

pub(crate) struct Extension {
    pub(crate) folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) task: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

/// Resolves every name to one address.
struct FixedAddress(SocketAddr);

impl Extension {
    /// Starts a server with a certificate of `authority`, which requests client certificates of `clients`.
    pub(crate) async fn start(authority: &TestAuthority, clients: Option<&TestAuthority>) -> Self {
        let folder = TempDir::new().unwrap();
        issue(authority, folder.path());
        let files = CertificateFiles::in_folder(folder.path());
        let certificate = LiveCertificate::follow(files, PERIOD).unwrap();
        let file = folder.path().join("ca.crt");
        let tls = if let Some(clients) = clients {
            fs::write(&file, clients.pem()).unwrap();
            let clients = ClientAuthority::required(file);
            ServerTls::with_client_authority(certificate, HttpVersions::Http1And2, clients, PERIOD).unwrap()
        } else {
            ServerTls::new(certificate, HttpVersions::Http1And2).unwrap()
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let options = ServerOptions {
            linger: Duration::ZERO,
            ..ServerOptions::default()
        };
        let task = tokio::spawn(
            handlers()
                .with_path_prefix("/x")
                .serve(listener, tls, options, async {
                    drop(stopped.await);
                }),
        );
        Self {
            folder,
            address,
            task,
            stop: Some(stop),
        }
    }

    pub(crate) fn start_shutdown(&mut self) {
        drop(self.stop.take());
    }

    /// A client with this server's handlers registered.
    pub(crate) async fn client(&self, ca_bundle: &str, identity: Option<LiveCertificate>) -> HookClient {
        let client = self.unregistered_client(identity);
        let config = config(ca_bundle);
        let discovered = client.discover(&config).await.unwrap();
        client.registry().register(config, discovered.handlers).unwrap();
        client
    }

    /// A client with an empty registry.
    pub(crate) fn unregistered_client(&self, identity: Option<LiveCertificate>) -> HookClient {
        let transport = Transport::new(TransportOptions {
            resolver: Arc::new(FixedAddress(self.address)),
            proxies: false,
            client_certificate: identity,
            ..TransportOptions::default()
        });
        let catalog = Arc::new(Catalog::cluster_api());
        HookClient::new(catalog, Arc::new(Registry::listed()), transport).with_circuit_breaker(None)
    }
}

impl Resolve for FixedAddress {
    fn resolve(&self, _: String, _: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        Box::pin(ready(Ok(vec![self.0])))
    }
}

/// Writes a certificate for the server.
pub(crate) fn issue(authority: &TestAuthority, folder: &Path) {
    let issued = authority.server(&["extension.system.svc"]);
    issued.write(folder);
}

pub(crate) fn config(ca_bundle: &str) -> ExtensionConfig {
    ExtensionConfig {
        name: "ext1".into(),
        resource_version: "1".into(),
        server: ServerReference::service("system", "extension", 443, "/x", ca_bundle.to_owned()).unwrap(),
        namespace_selector: json!({}),
        settings: BTreeMap::from([("color".into(), "green".into())]),
    }
}

/// Calls a handler by its own name and returns its message.
pub(crate) async fn call(client: &HookClient, handler: &str) -> Result<String, String> {
    let request = BeforeClusterUpgradeRequest {
        to_kubernetes_version: "v2".into(),
        ..Default::default()
    };
    let handler = format!("{handler}.ext1");
    let options = CallOptions::default();
    let called = client.call::<BeforeClusterUpgrade>(&handler, "default", &request, options);
    let response = called.await.map_err(|error| error.to_string())?;
    Ok(response.message)
}

fn handlers() -> HookServer {
    type Response = BeforeClusterUpgradeResponse;
    let says = |message: String| Response {
        message,
        ..Default::default()
    };
    let with = |failure_policy, timeout_seconds| HandlerOptions {
        failure_policy: Some(failure_policy),
        timeout_seconds: Some(timeout_seconds),
        ..Default::default()
    };
    let of_fail = || with(FailurePolicy::Fail, 10);
    HookServer::new(Catalog::cluster_api())
        .handle::<BeforeClusterUpgrade, _>("says", of_fail(), move |request, call| {
            let client = call.extensions.get::<ConnectedClient>().unwrap();
            let color = request.settings.get("color").map(String::as_str);
            let message = format!(
                "{} {} {}",
                request.to_kubernetes_version,
                color.unwrap_or_default(),
                client.certificates.len()
            );
            async move { says(message) }
        })
        .unwrap()
        .handle::<BeforeClusterUpgrade, _>("slow", of_fail(), move |_, _| async move {
            tokio::time::sleep(SLOW).await;
            says("at last".into())
        })
        .unwrap()
        .handle::<BeforeClusterUpgrade, _>("fails", with(FailurePolicy::Ignore, 10), async |_, _| {
            Err::<Response, _>("no database")
        })
        .unwrap()
        .handle::<BeforeClusterUpgrade, _>("odd", with(FailurePolicy::Ignore, 10), async |_, _| Response {
            status: ResponseStatus::Unknown("Maybe".into()),
            ..Default::default()
        })
        .unwrap()
        .handle::<BeforeClusterUpgrade, _>(
            "panics",
            with(FailurePolicy::Ignore, 10),
            async |_, _| -> Response { panic!("on request") },
        )
        .unwrap()
        .handle::<BeforeClusterUpgrade, _>("hangs", with(FailurePolicy::Fail, 1), async |_, _| {
            std::future::pending::<Response>().await
        })
        .unwrap()
        .handle::<BeforeClusterUpgrade, _>("hangs-ignored", with(FailurePolicy::Ignore, 1), async |_, _| {
            std::future::pending::<Response>().await
        })
        .unwrap()
}
