//! The cluster below a test cluster: a sandbox, or the cluster of a kubeconfig.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
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

use crate::{inventory::Inventory, program_images, request, steps};

/// How long the sandbox's API server is down in a restart. A real one needs some seconds.
const RESTART: Duration = Duration::from_secs(2);

/// The lifetime of a ServiceAccount token: longer than any scenario.
const TOKEN_SECONDS: u32 = 86_400;

/// A disruption or an optional part that a scenario needs of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// The API server is killed and started again.
    Restart,
    /// The storage hangs for some time.
    Pause,
    /// The API server injects faults: see [`Faults`].
    Faults,
    /// Pods run a controller-runtime program: see [`crate::sample::CONTROLLER_RUNTIME_IMAGE`].
    ControllerRuntime,
    /// cert-manager's cainjector runs: see [`crate::cainjector::PROGRAM`].
    Cainjector,
    /// The engines of Argo CD and Flux are available: see [`crate::gitops::PROGRAM`].
    Gitops,
    /// Helm is available: see [`crate::helm::PROGRAM`].
    Helm,
    /// The cluster has a second API server: see [`crate::second_api_server`].
    SecondApiServer,
    /// StatefulSets and DaemonSets have pods.
    Controllers,
    /// The API server enforces admission policies.
    AdmissionPolicies,
    /// The API server supports impersonation.
    Impersonation,
}

/// An existing cluster, as named on the command line.
#[derive(Clone, Debug, Args)]
pub struct Access {
    /// Kubeconfig of an admin of a dedicated cluster: everything that is created in the cluster during the
    /// run is deleted at the end.
    #[arg(long, env = "E2E_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// IPv4 network at which the cluster's API server reaches this machine. All of it must be local here. The
    /// default is a network for benchmarks that is otherwise unused.
    #[arg(
        long,
        env = "E2E_POD_NETWORK",
        value_name = "CIDR",
        default_value = "198.18.0.0/16"
    )]
    pub pod_network: Network,

    /// Registry without TLS from which the cluster's own nodes pull every image. Without it, a simulated node
    /// runs the pods.
    #[arg(long, env = "E2E_REGISTRY", value_name = "IP:PORT")]
    pub registry: Option<SocketAddr>,
}

/// What runs the pods of an existing cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pods {
    /// A simulated node. The API server reaches pods at this network, all of which is local to this machine
    /// or network namespace.
    Simulated(Network),
    /// The nodes of the cluster, which pull every image from this registry. The API server reaches this
    /// machine at the same address.
    Nodes(SocketAddr),
}

impl Access {
    /// Returns what runs the pods.
    pub fn pods(&self) -> Pods {
        self.registry
            .map_or(Pods::Simulated(self.pod_network), Pods::Nodes)
    }
}

/// The cluster below a test cluster.
pub enum BackingCluster {
    /// A sandbox, which leaves nothing behind.
    Sandbox(Box<Sandbox>),
    /// An existing cluster, which stays.
    Named(Box<Named>),
}

/// A cluster of a kubeconfig, dedicated to scenarios.
pub struct Named {
    /// The admin's kubeconfig, with absolute paths.
    kubeconfig: Value,
    pods: Pods,
    /// The objects that existed before the scenario.
    before: Inventory,
    /// A folder with the process ids of the control plane, if scenarios may kill them: see
    /// `e2e/cluster/start`.
    processes: Option<PathBuf>,
}

impl BackingCluster {
    /// Starts a sandbox.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox does not start.
    pub async fn sandbox() -> anyhow::Result<Self> {
        let sandbox = Sandbox::start(windlass_sandbox::SandboxOptions::default())
            .await
            .context("starting the sandbox")?;
        Ok(Self::Sandbox(Box::new(sandbox)))
    }

    /// Uses the cluster of the kubeconfig's current context. Its user must be an admin.
    ///
    /// # Errors
    ///
    /// Fails if the network of simulated pods is not local, the kubeconfig cannot be read, or the cluster does not list its
    /// objects.
    pub async fn named(kubeconfig: &Path, pods: Pods) -> anyhow::Result<Self> {
        if let Pods::Simulated(network) = pods {
            network.check_local().with_context(|| {
                format!(
                    "the pod network {network} is not local to this machine; as root, run `ip route add local {network} dev lo`"
                )
            })?;
        }
        let kubeconfig = Kubeconfig::read_from(kubeconfig)
            .with_context(|| format!("reading the kubeconfig {}", kubeconfig.display()))?;
        let kubeconfig = serde_json::to_value(kubeconfig)?;
        let client = client(&kubeconfig.to_string()).await?;
        let before = Inventory::take(&client)
            .await
            .context("listing the objects of the cluster")?;
        Ok(Self::Named(Box::new(Named {
            kubeconfig,
            pods,
            before,
            processes: None,
        })))
    }

    /// Allows scenarios to kill and pause the programs of the control plane; `folder` holds their process
    /// ids.
    #[must_use]
    pub fn with_processes(mut self, folder: Option<PathBuf>) -> Self {
        if let Self::Named(named) = &mut self {
            named.processes = folder;
        }
        self
    }

    /// Returns the kubeconfig of the cluster's admin.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn admin(&self) -> anyhow::Result<String> {
        match self {
            Self::Sandbox(sandbox) => Ok(sandbox.kubeconfig("admin", &["system:masters"])?),
            Self::Named(named) => Ok(named.kubeconfig.to_string()),
        }
    }

    /// Returns a kubeconfig of an existing ServiceAccount.
    ///
    /// # Errors
    ///
    /// Fails if the cluster issues no token.
    pub async fn service_account(&self, namespace: &str, name: &str) -> anyhow::Result<String> {
        match self {
            Self::Sandbox(sandbox) => Ok(sandbox.kubeconfig_for_service_account(namespace, name)),
            Self::Named(named) => named.service_account(namespace, name).await,
        }
    }

    /// The first of about a hundred addresses of this machine that the API server reaches; in an IPv6 cluster, which has none,
    /// the loopback address.
    pub fn address(&self) -> Ipv4Addr {
        match self {
            Self::Sandbox(_) => windlass_node::NodeOptions::default().addresses.host(),
            Self::Named(named) => match named.pods {
                Pods::Simulated(network) => network.host(),
                Pods::Nodes(registry) => match registry.ip() {
                    IpAddr::V4(address) => address,
                    IpAddr::V6(_) => Ipv4Addr::LOCALHOST,
                },
            },
        }
    }

    /// Returns whether the cluster has nodes of its own.
    pub fn has_nodes(&self) -> bool {
        matches!(self, Self::Named(named) if matches!(named.pods, Pods::Nodes(_)))
    }

    /// Makes the images of `options` available to pods. Returns the options of the simulated node to start
    /// for them; `None` if the cluster has nodes, which pull the images.
    ///
    /// # Errors
    ///
    /// Fails if the kubeconfig cannot be used, or an image cannot be pushed.
    pub async fn node(
        &self,
        options: windlass_node::NodeOptions,
    ) -> anyhow::Result<Option<windlass_node::NodeOptions>> {
        let named = match self {
            Self::Sandbox(sandbox) => {
                return Ok(Some(windlass_node::NodeOptions {
                    api_server: Some(sandbox.address()),
                    ..options
                }));
            }
            Self::Named(named) => named,
        };
        let network = match named.pods {
            Pods::Simulated(network) => network,
            Pods::Nodes(registry) => {
                program_images::ensure(&registry.to_string(), &options.images).await?;
                return Ok(None);
            }
        };
        let server = config(&named.kubeconfig.to_string()).await?.cluster_url;
        let port = server.port_u16().unwrap_or(443);
        let address = server.host().and_then(|host| host.parse().ok());
        Ok(Some(windlass_node::NodeOptions {
            addresses: network,
            // Without kube-proxy, the Service address does not work here.
            api_server: address.map(|ip| SocketAddr::new(ip, port)),
            ..options
        }))
    }

    /// Kills the API server, waits until it is back, and restarts the controller manager with it.
    ///
    /// The watches of a running controller manager reconnect up to 30 s later. A Service whose pods change
    /// before that is retried 15 times with growing pauses of up to 1,000 s, and no later event shortens the
    /// last pause (`syncService` of pkg/controller/endpointslice in Kubernetes 1.36): its endpoints then name
    /// deleted pods.
    ///
    /// # Errors
    ///
    /// Fails if this cluster does not support it, or the API server does not come back.
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

    /// Pauses the storage for `pause`.
    ///
    /// # Errors
    ///
    /// Fails if this cluster does not support it.
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

    /// Returns the fault injection of the sandbox.
    ///
    /// # Errors
    ///
    /// Fails if this cluster does not support it.
    pub fn faults(&self) -> anyhow::Result<&Faults> {
        match self {
            Self::Sandbox(sandbox) => Ok(sandbox.faults()),
            Self::Named(_) => anyhow::bail!("only the sandbox injects faults"),
        }
    }

    /// Deletes the objects that were not in an existing cluster before.
    ///
    /// # Errors
    ///
    /// Fails if an object remains.
    pub async fn clear(&self) -> anyhow::Result<()> {
        match self {
            Self::Sandbox(_) => Ok(()),
            Self::Named(named) => named.before.restore(&client(&self.admin()?).await?).await,
        }
    }
}

impl Named {
    async fn signal(&self, program: &str, signal: &str) -> anyhow::Result<()> {
        let processes = self
            .processes
            .as_ref()
            .context("this cluster has no folder with process ids")?;
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

/// A client that never retries.
///
/// # Errors
///
/// Fails if the kubeconfig cannot be used.
pub async fn client(kubeconfig: &str) -> anyhow::Result<Client> {
    let mut config = config(kubeconfig).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

pub(crate) async fn config(kubeconfig: &str) -> anyhow::Result<Config> {
    let parsed = Kubeconfig::from_yaml(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await?)
}
