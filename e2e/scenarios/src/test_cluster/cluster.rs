//! Starts and stops a test cluster.

use std::{fs, path::PathBuf};

use futures::future::LocalBoxFuture;
use kube::Client;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{manifests, options::TestClusterOptions};
use crate::{
    cluster::{self, BackingCluster},
    command::Command,
    forwarder::Forwarder,
    inventory::Inventory,
    operator::{self, Half, OperatorProcess},
    proxy::Proxy,
    steps::{self, PATIENCE, check, get, serving_certificates, until},
};

/// The variable that keeps the folder of a test cluster, with the logs of the operator and of the pods.
const KEEP: &str = "WINDLASS_E2E_KEEP";

/// A test cluster, running until it is dropped.
pub struct TestCluster {
    /// A client of the cluster admin that never retries.
    pub client: Client,
    /// How to start the operator.
    pub operator: OperatorProcess,
    /// The `windlass` command of the cluster admin.
    pub command: Command,
    pub(super) directory: TempDir,
    stop: CancellationToken,
    node: Option<JoinHandle<()>>,
    /// The cluster below.
    pub backing: BackingCluster,
}

impl TestCluster {
    /// Sets up a test cluster on a cluster that nothing else uses.
    ///
    /// # Errors
    ///
    /// Fails if the node or the operator's RBAC cannot be set up.
    pub fn on(
        backing: BackingCluster,
        options: TestClusterOptions,
    ) -> LocalBoxFuture<'static, anyhow::Result<Self>> {
        // Boxed, so that the body is compiled once, and not for each program that runs it.
        Box::pin(async move {
            let mut directory = TempDir::with_prefix("windlass-e2e-")?;
            if std::env::var_os(KEEP).is_some() {
                directory.disable_cleanup(true);
                tracing::info!(folder = %directory.path().display(), "Keeping the folder of the test cluster");
            }
            let admin = backing.admin()?;
            let client = cluster::client(&admin).await?;
            if let Err(error) = manifests::apply_all(&client).await {
                backing.clear().await?;
                return Err(error);
            }
            let command = Command {
                program: options.program.clone(),
                kubeconfig: directory.path().join("admin.kubeconfig"),
                folder: std::env::current_dir()?,
            };
            fs::write(&command.kubeconfig, &admin)?;
            let kubeconfig = directory.path().join("operator.kubeconfig");
            let account = backing
                .service_account(operator::NAMESPACE, operator::ACCOUNT)
                .await?;
            fs::write(&kubeconfig, account)?;
            let bundles = directory.path().join("bundles");
            fs::create_dir(&bundles)?;
            let stop = CancellationToken::new();
            let node_client = Client::try_from(cluster::config(&admin).await?)?;
            let node_options = backing.node(options.node(directory.path())?).await?;
            let node = node_options.map(|options| start_node(node_client, options, stop.clone()));
            let (program, subcommand) = options.operator();
            Ok(Self {
                operator: OperatorProcess {
                    pod: operator::ACCOUNT.to_owned(),
                    client: client.clone(),
                    arguments: options.arguments(),
                    program,
                    subcommand,
                    kubeconfig,
                    half: None,
                    bundle_dir: bundles,
                    log: directory.path().join("operator.log"),
                    log_filter: None,
                    environment: Vec::new(),
                },
                client,
                command,
                directory,
                stop,
                node,
                backing,
            })
        })
    }

    /// Writes a file into the test cluster's folder.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn write(&self, name: &str, content: &str) -> anyhow::Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, content)?;
        Ok(path)
    }

    /// The path of a file in the test cluster's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a new proxy in front of `operator`.
    ///
    /// # Errors
    ///
    /// Fails if the proxy cannot be opened.
    pub async fn proxied(&self, operator: &OperatorProcess) -> anyhow::Result<(OperatorProcess, Proxy)> {
        // The proxy uses the operator's rights.
        let client = cluster::client(&fs::read_to_string(&operator.kubeconfig)?).await?;
        let proxy = Proxy::open(client).await?;
        let kubeconfig = self.write(&format!("{}.proxy.kubeconfig", operator.pod), &proxy.kubeconfig())?;
        Ok((operator.with_kubeconfig(&kubeconfig), proxy))
    }

    /// The certificate controllers as their own process, with their own rights.
    ///
    /// # Errors
    ///
    /// Fails if the ServiceAccount cannot be used.
    pub async fn certificates_half(&self) -> anyhow::Result<OperatorProcess> {
        let account = self
            .backing
            .service_account(operator::NAMESPACE, operator::CERTIFICATES_ACCOUNT);
        let kubeconfig = self.write("certificates.kubeconfig", &account.await?)?;
        let half = self.operator.replica(operator::CERTIFICATES_ACCOUNT);
        Ok(half.with_kubeconfig(&kubeconfig).with_half(Half::Certificates))
    }

    /// The policy controllers as their own process, with their own rights. The manifests of policies must be
    /// applied.
    ///
    /// # Errors
    ///
    /// Fails if the ServiceAccount cannot be used.
    pub async fn policies_part(&self, pod: &str) -> anyhow::Result<OperatorProcess> {
        let account = self
            .backing
            .service_account(operator::NAMESPACE, operator::POLICIES_ACCOUNT);
        let kubeconfig = self.write(&format!("{pod}.kubeconfig"), &account.await?)?;
        let part = self.operator.replica(pod);
        Ok(part.with_kubeconfig(&kubeconfig).with_half(Half::Policies))
    }

    /// Puts a new forwarder in front of `operator`.
    ///
    /// # Errors
    ///
    /// Fails if the forwarder cannot be opened.
    pub async fn forwarded(
        &self,
        operator: &OperatorProcess,
    ) -> anyhow::Result<(OperatorProcess, Forwarder)> {
        let forwarder = Forwarder::open(&fs::read_to_string(&operator.kubeconfig)?).await?;
        let name = format!("{}.forwarder.kubeconfig", operator.pod);
        let kubeconfig = self.write(&name, forwarder.kubeconfig())?;
        Ok((operator.with_kubeconfig(&kubeconfig), forwarder))
    }

    /// Waits until a ServingCertificate is stable and all endpoints and targets are current.
    ///
    /// # Errors
    ///
    /// Fails on a timeout.
    pub async fn settled(&self, namespace: &str, certificate: &str) -> anyhow::Result<Value> {
        let path = format!("{}/{certificate}", serving_certificates(namespace));
        until(&format!("{path} is settled"), PATIENCE, async || {
            let object = get(&self.client, &path).await?.unwrap_or_default();
            Ok(if steps::is_settled(&object) {
                Ok(object)
            } else {
                Err(format!("{}: {}", steps::conditions(&object), object["status"]))
            })
        })
        .await
    }

    /// Lists the objects of the cluster after the node has joined.
    ///
    /// # Errors
    ///
    /// Fails if the node does not join, or the objects cannot be listed.
    pub(crate) async fn inventory(&self) -> anyhow::Result<Inventory> {
        until("the node has joined", PATIENCE, async || {
            let nodes = steps::list(&self.client, "/api/v1/nodes").await?;
            Ok(check(!nodes.is_empty(), || "no node".to_owned()))
        })
        .await?;
        Inventory::take(&self.client).await
    }

    /// Stops the node and the processes of all pods.
    pub async fn stop_node(&mut self) {
        self.stop.cancel();
        if let Some(node) = self.node.take()
            && let Err(error) = node.await
        {
            tracing::warn!(%error, "Stopping the node failed");
        }
    }

    /// Stops the node and its processes, and stops or restores the cluster.
    ///
    /// # Errors
    ///
    /// Fails if objects of the test cluster remain in the cluster.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop_node().await;
        self.backing.clear().await
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn start_node(
    client: Client,
    options: windlass_node::NodeOptions,
    stop: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = windlass_node::run(client, options, stop).await {
            tracing::error!(%error, "The node ended");
        }
    })
}
