//! The cluster below a test cluster: a sandbox of its own, or one that a kubeconfig names.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use windlass_node::Network;
use windlass_sandbox::{Sandbox, server::Faults};

use crate::{inventory::Inventory, request, steps};

/// How long nobody answers when the sandbox's API server restarts; a real one takes some seconds.
const RESTART: Duration = Duration::from_secs(2);

/// How long a ServiceAccount's token lives: longer than any scenario.
const TOKEN_SECONDS: u32 = 86_400;

/// What can be inflicted on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// Its API server is killed and comes back.
    Restart,
    /// Its storage hangs for a while.
    Pause,
    /// It misbehaves as it is told to: see [`Faults`].
    Faults,
    /// Its pods run a program of controller-runtime: see [`crate::sample::CONTROLLER_RUNTIME_IMAGE`].
    ControllerRuntime,
    /// cert-manager's cainjector runs beside: see [`crate::cainjector::PROGRAM`].
    Cainjector,
    /// Helm installs something in it: see [`crate::helm::PROGRAM`].
    Helm,
    /// Its StatefulSets and DaemonSets have pods.
    Controllers,
    /// It enforces admission policies.
    AdmissionPolicies,
    /// Its API server lets others be impersonated.
    Impersonation,
}

/// A cluster that was there before, as it is named on a command line.
#[derive(Clone, Debug, Args)]
pub struct Access {
    /// Kubeconfig of a cluster dedicated to this: whatever is created in it meanwhile is deleted at the end. The user
    /// must be an admin.
    #[arg(long, env = "E2E_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// IPv4 network where the cluster's API server reaches this machine; all of it must be local here. The default is a
    /// network for benchmarks that nothing else uses.
    #[arg(
        long,
        env = "E2E_POD_NETWORK",
        value_name = "CIDR",
        default_value = "198.18.0.0/16"
    )]
    pub pod_network: Network,
}

/// The cluster below a test cluster.
pub enum BackingCluster {
    /// A sandbox, of which nothing is left.
    Sandbox(Box<Sandbox>),
    /// One that was there before and stays.
    Named(Box<Named>),
}

/// A cluster that a kubeconfig names. It must be for scenarios alone.
pub struct Named {
    /// The admin's kubeconfig, with absolute paths.
    kubeconfig: Value,
    /// Where its API server looks for pods of this machine.
    pods: Network,
    /// What was there before.
    before: Inventory,
    /// A folder with the process ids of its programs, where those may be killed: see `e2e/controlplane/with`.
    processes: Option<PathBuf>,
}

// === impl BackingCluster ===

impl BackingCluster {
    /// A new sandbox.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub async fn sandbox() -> anyhow::Result<Self> {
        let sandbox = Sandbox::start(windlass_sandbox::SandboxOptions::default())
            .await
            .context("starting the sandbox")?;
        Ok(Self::Sandbox(Box::new(sandbox)))
    }

    /// The cluster of the current context of a kubeconfig, whose user must be its admin. Its API server must reach
    /// `pods`, all of which must be local to this machine or network namespace.
    ///
    /// # Errors
    ///
    /// When `pods` are not local, the kubeconfig cannot be read, or the cluster cannot be asked what is in it.
    pub async fn named(kubeconfig: &Path, pods: Network) -> anyhow::Result<Self> {
        pods.check_local().with_context(|| {
            format!(
                "{pods}, where pods are to get their addresses, is not local to this machine; as root, \
                 `ip route add local {pods} dev lo` makes it so"
            )
        })?;
        let kubeconfig = Kubeconfig::read_from(kubeconfig)
            .with_context(|| format!("reading the kubeconfig {}", kubeconfig.display()))?;
        let kubeconfig = serde_json::to_value(kubeconfig)?;
        let client = client(&kubeconfig.to_string()).await?;
        let before = Inventory::take(&client)
            .await
            .context("asking what is in the cluster")?;
        Ok(Self::Named(Box::new(Named {
            kubeconfig,
            pods,
            before,
            processes: None,
        })))
    }

    /// The same cluster, whose programs may be killed and paused: `folder` holds their process ids.
    #[must_use]
    pub fn with_processes(mut self, folder: Option<PathBuf>) -> Self {
        if let Self::Named(named) = &mut self {
            named.processes = folder;
        }
        self
    }

    /// The kubeconfig of the cluster's admin.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn admin(&self) -> anyhow::Result<String> {
        match self {
            Self::Sandbox(sandbox) => Ok(sandbox.kubeconfig("admin", &["system:masters"])?),
            Self::Named(named) => Ok(named.kubeconfig.to_string()),
        }
    }

    /// The kubeconfig of a ServiceAccount that exists.
    ///
    /// # Errors
    ///
    /// When the cluster gives it no token.
    pub async fn service_account(&self, namespace: &str, name: &str) -> anyhow::Result<String> {
        match self {
            Self::Sandbox(sandbox) => Ok(sandbox.kubeconfig_for_service_account(namespace, name)),
            Self::Named(named) => named.service_account(namespace, name).await,
        }
    }

    /// The first of some hundred addresses of this machine at which the API server reaches a server of ours.
    pub fn address(&self) -> Ipv4Addr {
        match self {
            Self::Sandbox(_) => windlass_node::NodeOptions::default().addresses.host(),
            Self::Named(named) => named.pods.host(),
        }
    }

    /// A node that the API server reaches, set up as `options` say in all else.
    ///
    /// # Errors
    ///
    /// When the kubeconfig cannot be used.
    pub async fn node(
        &self,
        options: windlass_node::NodeOptions,
    ) -> anyhow::Result<windlass_node::NodeOptions> {
        let named = match self {
            Self::Sandbox(sandbox) => {
                return Ok(windlass_node::NodeOptions {
                    api_server: Some(sandbox.address()),
                    ..options
                });
            }
            Self::Named(named) => named,
        };
        let server = config(&named.kubeconfig.to_string()).await?.cluster_url;
        let port = server.port_u16().unwrap_or(443);
        let address = server.host().and_then(|host| host.parse().ok());
        Ok(windlass_node::NodeOptions {
            addresses: named.pods,
            // No kube-proxy makes the Service's address work here.
            api_server: address.map(|ip| SocketAddr::new(ip, port)),
            ..options
        })
    }

    /// Kills the API server, waits until it is back, and lets the controller manager begin anew with it.
    ///
    /// The watches of a controller manager that stays come back up to 30 s later. A Service whose pods change before
    /// that is tried 15 times with ever longer pauses, up to 1,000 s, and nothing that comes later shortens the last one
    /// (`syncService` of pkg/controller/endpointslice in Kubernetes 1.36): its endpoints are those of pods that are gone.
    ///
    /// # Errors
    ///
    /// When that cannot be inflicted on this cluster, or the API server does not come back.
    pub async fn restart_api_server(&self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::Sandbox(sandbox) => sandbox.restart(RESTART).await?,
            Self::Named(named) => named.signal("kube-apiserver", "KILL").await?,
        }
        steps::until("the API server is back", steps::PATIENCE, async || {
            Ok(request::ready(client).await)
        })
        .await?;
        match self {
            Self::Sandbox(_) => Ok(()),
            Self::Named(named) => named.signal("kube-controller-manager", "KILL").await,
        }
    }

    /// Lets storage hang for `pause`.
    ///
    /// # Errors
    ///
    /// When that cannot be inflicted on this cluster.
    pub async fn pause_storage(&self, pause: Duration) -> anyhow::Result<()> {
        match self {
            Self::Sandbox(sandbox) => {
                sandbox.faults().pause();
                tokio::time::sleep(pause).await;
                sandbox.faults().resume();
                Ok(())
            }
            Self::Named(named) => {
                named.signal("etcd", "STOP").await?;
                tokio::time::sleep(pause).await;
                named.signal("etcd", "CONT").await
            }
        }
    }

    /// How to make it misbehave.
    ///
    /// # Errors
    ///
    /// When that cannot be inflicted on this cluster.
    pub fn faults(&self) -> anyhow::Result<&Faults> {
        match self {
            Self::Sandbox(sandbox) => Ok(sandbox.faults()),
            Self::Named(_) => anyhow::bail!("only the sandbox misbehaves when it is told to"),
        }
    }

    /// Removes from a cluster that stays what was not in it before.
    ///
    /// # Errors
    ///
    /// When something does not go.
    pub async fn clear(&self) -> anyhow::Result<()> {
        match self {
            Self::Sandbox(_) => Ok(()),
            Self::Named(named) => named.before.restore(&client(&self.admin()?).await?).await,
        }
    }
}

// === impl Named ===

impl Named {
    async fn signal(&self, program: &str, signal: &str) -> anyhow::Result<()> {
        let processes = self
            .processes
            .as_ref()
            .context("where the programs of this cluster run is not known")?;
        let file = processes.join(format!("{program}.pid"));
        let process =
            std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let sent = tokio::process::Command::new("kill")
            .args(["-s", signal, process.trim()])
            .status()
            .await
            .context("running kill")?;
        anyhow::ensure!(sent.success(), "{program} cannot be sent {signal}: {sent}");
        Ok(())
    }

    async fn service_account(&self, namespace: &str, name: &str) -> anyhow::Result<String> {
        let client = client(&self.kubeconfig.to_string()).await?;
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS}});
        let answer = steps::succeed(&client, "POST", &path, Some(&asked)).await?;
        let token = request::text(&answer.body, "/status/token");
        let mut kubeconfig = self.kubeconfig.clone();
        for context in kubeconfig["contexts"].as_array_mut().into_iter().flatten() {
            context["context"]["user"] = json!(name);
        }
        kubeconfig["users"] = json!([{"name": name, "user": {"token": token}}]);
        Ok(kubeconfig.to_string())
    }
}

/// A client that never retries by itself.
///
/// # Errors
///
/// When the kubeconfig cannot be used.
pub async fn client(kubeconfig: &str) -> anyhow::Result<Client> {
    let mut config = config(kubeconfig).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

pub(crate) async fn config(kubeconfig: &str) -> anyhow::Result<Config> {
    let parsed = Kubeconfig::from_yaml(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await?)
}
