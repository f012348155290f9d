//! A test bed: a cluster with Windlass's CRDs and RBAC, a node, and all that is needed to start the operator.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use kube::Client;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_node::Program;

use crate::{
    cluster::{self, Cluster},
    command::Command,
    gate::Gate,
    inventory::Inventory,
    operator::Operator,
    programs, request, sample,
    steps::{self, PATIENCE, get, serving_certificates, until},
};

/// The namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "windlass-system";

/// The ServiceAccount of the operator.
const OPERATOR_ACCOUNT: &str = "windlass";

/// Set to keep the folder of a bed: logs of the operator and of the pods.
const KEEP: &str = "WINDLASS_E2E_KEEP";

/// What is kept of a scenario that failed.
const EVIDENCE: &[&str] = &[
    steps::BUNDLE_DEPLOYMENTS,
    "/apis/windlass.dev/v1alpha1/servingcertificates",
    steps::CRDS,
    steps::VALIDATING,
    steps::MUTATING,
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/api/v1/namespaces",
    "/api/v1/pods",
    "/api/v1/services",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/events.k8s.io/v1/events",
];

/// How a bed is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The executable that is each program by its first argument: see [`programs`].
    pub program: PathBuf,
    /// How long the node takes to bring a changed Secret into a pod, drawn anew each time.
    pub refresh_delay: std::ops::RangeInclusive<Duration>,
    /// How long the operator waits.
    pub waits: Waits,
    /// Programs of images, beside the sample operator's.
    pub images: Vec<(String, Program)>,
    /// More arguments of `windlass run`.
    pub operator_arguments: Vec<String>,
}

/// How long the operator waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waits {
    /// No longer than this bed needs: its node brings Secrets into pods within a known time, and its API server trusts
    /// a bundle at once.
    AsNeeded,
    /// As in any cluster, all multiplied by this factor.
    Scaled(f64),
}

/// A test bed, running until it is dropped.
pub struct Bed {
    /// The cluster admin. Never retries by itself.
    pub client: Client,
    /// How to start the operator.
    pub operator: Operator,
    /// The command, as the cluster admin.
    pub command: Command,
    directory: TempDir,
    stop: CancellationToken,
    node: Option<JoinHandle<()>>,
    /// What is below.
    pub cluster: Cluster,
}

// === impl Options ===

impl Options {
    /// A bed as most scenarios want it: Secrets reach their pods within a second.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            refresh_delay: Duration::ZERO..=Duration::from_secs(1),
            waits: Waits::AsNeeded,
            images: Vec::new(),
            operator_arguments: Vec::new(),
        }
    }
}

// === impl Bed ===

impl Bed {
    /// A bed on a cluster that nothing else uses.
    ///
    /// # Errors
    ///
    /// When the node or the operator's RBAC cannot be set up.
    pub async fn on(cluster: Cluster, options: Options) -> anyhow::Result<Self> {
        let mut directory = TempDir::with_prefix("windlass-e2e-")?;
        if std::env::var_os(KEEP).is_some() {
            directory.disable_cleanup(true);
            tracing::info!(folder = %directory.path().display(), "Keeping the folder of the bed");
        }
        let admin = cluster.admin()?;
        let client = cluster::client(&admin).await?;
        if let Err(error) = apply_manifests(&client).await {
            cluster.clear().await?;
            return Err(error);
        }
        let command = Command {
            program: options.program.clone(),
            kubeconfig: directory.path().join("admin.kubeconfig"),
        };
        fs::write(&command.kubeconfig, &admin)?;
        let kubeconfig = directory.path().join("operator.kubeconfig");
        let account = cluster
            .service_account(OPERATOR_NAMESPACE, OPERATOR_ACCOUNT)
            .await?;
        fs::write(&kubeconfig, account)?;
        let bundles = directory.path().join("bundles");
        fs::create_dir(&bundles)?;
        let stop = CancellationToken::new();
        let node_client = Client::try_from(cluster::config(&admin).await?)?;
        let node_options = cluster.node(node_options(&options, directory.path())).await?;
        let node = start_node(node_client, node_options, stop.clone());
        Ok(Self {
            operator: Operator {
                pod: OPERATOR_ACCOUNT.to_owned(),
                client: client.clone(),
                arguments: operator_arguments(&options),
                program: options.program,
                kubeconfig,
                bundle_dir: bundles,
                log: directory.path().join("operator.log"),
                log_filter: None,
            },
            client,
            command,
            directory,
            stop,
            node: Some(node),
            cluster,
        })
    }

    /// Puts a sample bundle of the repository into the operator's bundle folder.
    ///
    /// # Errors
    ///
    /// When it cannot be copied.
    pub fn bundle(&self, name: &str) -> anyhow::Result<PathBuf> {
        self.add_bundle(&sample::bundle(name), name)
    }

    /// Puts a bundle into the operator's bundle folder, as `name`.
    ///
    /// # Errors
    ///
    /// When it cannot be copied.
    pub fn add_bundle(&self, source: &Path, name: &str) -> anyhow::Result<PathBuf> {
        let target = self.operator.bundle_dir.join(name);
        copy(source, &target).with_context(|| format!("copying {}", source.display()))?;
        Ok(target)
    }

    /// Replaces text in the manifests of a bundle.
    ///
    /// # Errors
    ///
    /// When no manifest contains it.
    pub fn edit(&self, bundle: &Path, from: &str, to: &str) -> anyhow::Result<()> {
        let mut found = false;
        for entry in fs::read_dir(bundle.join("manifests"))? {
            let path = entry?.path();
            let text = fs::read_to_string(&path)?;
            if text.contains(from) {
                found = true;
                fs::write(&path, text.replace(from, to))?;
            }
        }
        anyhow::ensure!(found, "no manifest of {} contains {from:?}", bundle.display());
        Ok(())
    }

    /// Writes a file into the bed's folder.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &str) -> anyhow::Result<PathBuf> {
        let path = self.directory.path().join(name);
        fs::write(&path, content)?;
        Ok(path)
    }

    /// `operator` behind a new gate.
    ///
    /// # Errors
    ///
    /// When the gate cannot be opened.
    pub async fn gated(&self, operator: &Operator) -> anyhow::Result<(Operator, Gate)> {
        let gate = Gate::open(self.operator_client().await?).await?;
        let kubeconfig = self.write(&format!("{}.gate.kubeconfig", operator.pod), &gate.kubeconfig())?;
        Ok((operator.with_kubeconfig(&kubeconfig), gate))
    }

    /// A client with the operator's own rights.
    ///
    /// # Errors
    ///
    /// When its kubeconfig cannot be read.
    async fn operator_client(&self) -> anyhow::Result<Client> {
        cluster::client(&fs::read_to_string(&self.operator.kubeconfig)?).await
    }

    /// The trust bundle of a ServingCertificate, in base64: `ca.crt` of its Secret.
    ///
    /// # Errors
    ///
    /// When there is no such Secret.
    pub async fn trust_bundle(&self, namespace: &str, certificate: &str) -> anyhow::Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{certificate}-cert");
        let secret = get(&self.client, &path)
            .await?
            .with_context(|| format!("{path} does not exist"))?;
        let bundle = request::text(&secret, "/data/ca.crt");
        anyhow::ensure!(!bundle.is_empty(), "{path} has no ca.crt");
        Ok(bundle.to_owned())
    }

    /// Waits until a ServingCertificate is stable, with every endpoint and every target current.
    ///
    /// # Errors
    ///
    /// When it does not settle.
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

    /// The end of the operator's log: what is printed with a failure.
    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.operator.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// What is in the cluster now that the node has joined it.
    ///
    /// # Errors
    ///
    /// When the node does not come, or the cluster cannot be asked.
    pub(crate) async fn inventory(&self) -> anyhow::Result<Inventory> {
        until("the node has joined", PATIENCE, async || {
            let nodes = steps::list(&self.client, "/api/v1/nodes").await?;
            Ok(if nodes.is_empty() {
                Err("no node".to_owned())
            } else {
                Ok(())
            })
        })
        .await?;
        Inventory::take(&self.client).await
    }

    /// Ends the node, and with it every process of a pod.
    pub async fn stop_node(&mut self) {
        self.stop.cancel();
        if let Some(node) = self.node.take()
            && let Err(error) = node.await
        {
            tracing::warn!(%error, "The node ended badly");
        }
    }

    /// Keeps the bed's folder, and writes into it what there is in the cluster but Secrets. Where it is.
    ///
    /// # Errors
    ///
    /// When the objects cannot be read or written.
    pub async fn keep(&mut self) -> anyhow::Result<PathBuf> {
        self.directory.disable_cleanup(true);
        let folder = self.directory.path().to_owned();
        let objects = folder.join("objects");
        fs::create_dir_all(&objects)?;
        for collection in EVIDENCE {
            let found = steps::list(&self.client, collection).await?;
            let name = collection.rsplit('/').next().unwrap_or(collection);
            fs::write(
                objects.join(format!("{name}.json")),
                serde_json::to_vec_pretty(&found)?,
            )?;
        }
        Ok(folder)
    }

    /// Ends the node and its processes, and the cluster, or leaves it as it was before.
    ///
    /// # Errors
    ///
    /// When something of the bed stays in the cluster.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop_node().await;
        self.cluster.clear().await
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The operator's user name.
pub(crate) fn operator_user() -> String {
    format!("system:serviceaccount:{OPERATOR_NAMESPACE}:{OPERATOR_ACCOUNT}")
}

/// Applies what `windlass manifests` prints, but for the Deployment: the operator runs as a process here. Scenarios that
/// have it guard something apply what that takes.
async fn apply_manifests(client: &Client) -> anyhow::Result<()> {
    for object in windlass::cli::manifests::objects()? {
        let left_out = ["Deployment", "Service", "ValidatingWebhookConfiguration"];
        if left_out.iter().all(|kind| object["kind"] != *kind) {
            apply(client, &object).await?;
        }
    }
    let crd = |name: &str| format!("{}/{name}.windlass.dev", steps::CRDS);
    for name in ["bundledeployments", "servingcertificates"] {
        until(&format!("{name} are served"), PATIENCE, async || {
            let conditions = get(client, &crd(name))
                .await?
                .map(|crd| steps::conditions(&crd))
                .unwrap_or_default();
            Ok(if conditions.contains("Established=True") {
                Ok(())
            } else {
                Err(conditions)
            })
        })
        .await?;
    }
    Ok(())
}

/// Creates an object of a kind that the manifests hold.
pub(crate) async fn apply(client: &Client, object: &Value) -> anyhow::Result<()> {
    let (api_version, kind) = (
        request::text(object, "/apiVersion"),
        request::text(object, "/kind"),
    );
    let root = if api_version == "v1" {
        "/api/v1".to_owned()
    } else {
        format!("/apis/{api_version}")
    };
    let plural = format!("{}s", kind.to_lowercase());
    let namespace = object["metadata"]["namespace"].as_str();
    let folder = namespace
        .map(|namespace| format!("/namespaces/{namespace}"))
        .unwrap_or_default();
    steps::succeed(client, "POST", &format!("{root}{folder}/{plural}"), Some(object)).await?;
    Ok(())
}

/// What makes the operator wait as long as it is to.
fn operator_arguments(options: &Options) -> Vec<String> {
    let (scale, reload, disarm, stored, look) = match options.waits {
        Waits::AsNeeded => {
            // The sample operator looks at its files five times a second.
            let reload = *options.refresh_delay.end() + Duration::from_secs(2);
            (
                0.05,
                Some(reload),
                Duration::from_secs(1),
                Duration::from_secs(1),
                Duration::from_millis(500),
            )
        }
        Waits::Scaled(factor) => {
            let scaled = |seconds| Duration::from_secs(seconds).mul_f64(factor);
            (factor, None, scaled(10), scaled(70), scaled(5))
        }
    };
    let milliseconds = |wait: Duration| format!("{}ms", wait.as_millis());
    let waits = [
        ("--time-scale", Some(scale.to_string())),
        ("--reload-delay", reload.map(milliseconds)),
        ("--disarm-delay", Some(milliseconds(disarm))),
        ("--storage-delay", Some(milliseconds(stored))),
        ("--look-again", Some(milliseconds(look))),
    ];
    let given = waits
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value?]));
    given
        .flatten()
        .chain(options.operator_arguments.iter().cloned())
        .collect()
}

fn node_options(options: &Options, directory: &Path) -> windlass_node::Options {
    let program = |arguments: &[&str]| Program {
        path: options.program.clone(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
    };
    let mut images: std::collections::BTreeMap<String, Program> = options.images.iter().cloned().collect();
    // A release knows the versions of its time.
    for (release, versions) in [("v1", "v1beta1,v1"), ("v2", "v1beta1,v1,v2"), ("v3", "v2")] {
        images.insert(
            format!("{}:{release}", sample::IMAGE),
            program(&[programs::SAMPLE_OPERATOR, "--versions", versions]),
        );
    }
    windlass_node::Options {
        images,
        stand_in: program(&[programs::SAMPLE_OPERATOR, "--stand-in"]),
        refresh_delay: options.refresh_delay.clone(),
        directory: directory.join("node"),
        ..windlass_node::Options::default()
    }
}

fn start_node(client: Client, options: windlass_node::Options, stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = windlass_node::run(client, options, stop).await {
            tracing::error!(%error, "The node ended");
        }
    })
}

fn copy(source: &Path, target: &Path) -> std::io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
