//! The arguments, and the steps of an install.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::ValueEnum;
use kube::Resource;
use serde_json::{Value, json};
use windlass_api::{self, BundleDeployment};
use windlass_bundle::render::CertificateProvider;
use windlass_cluster::{Cluster, kinds};
use windlass_crd::claims::Adoption;
use windlass_object::{ObjectKey, names, object, text::OneLine};

use super::{
    super::{
        arguments,
        bundle::{Checked, InstallArgs},
        cluster::{ClusterArgs, OperatorArgs, explained},
        follow::{WaitArgs, follow},
    },
    outcome::{self, Watched},
    parts::Parts,
};
use crate::terminal::Progress;

/// Installs a bundle, or upgrades the bundle that is installed under that name.
///
/// Checks the bundle first: if it has problems, prints them, one per line, and changes nothing. Stores the bundle in
/// ConfigMaps in the operator's namespace, from where the operator reads it. Prints progress. Exits 0 when every
/// webhook is proven and armed, 1 if the bundle is refused or the timeout expires.
///
/// Options that are omitted when the bundle is upgraded revert to their defaults.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    #[command(flatten)]
    install: InstallArgs,

    /// Name of the BundleDeployment [default: the package of the bundle].
    #[arg(long, value_parser = arguments::bundle_deployment)]
    name: Option<String>,

    /// Whether to refuse CustomResourceDefinition changes that would break clients or stored objects [default: strict].
    #[arg(long, value_enum)]
    crd_upgrade_safety: Option<CrdUpgradeSafety>,

    /// Take over an existing object of the bundle that Windlass did not create, for example
    /// CustomResourceDefinition/widgets.example.com. Can be repeated.
    #[arg(long, value_name = "KIND/NAME")]
    adopt: Vec<Adoption>,

    /// What to do with the CustomResourceDefinitions of the bundle, and with all their objects, when it is removed
    /// [default: keep-crds].
    #[arg(long, value_enum)]
    deletion_policy: Option<DeletionPolicy>,

    /// Overwrite fields of the BundleDeployment that another field manager has set.
    #[arg(long)]
    force_conflicts: bool,

    #[command(flatten)]
    waiting: WaitArgs,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CrdUpgradeSafety {
    /// Refuse them.
    Strict,
    /// Apply every change that the API server accepts.
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DeletionPolicy {
    /// Keep them.
    KeepCrds,
    /// Delete them.
    DeleteCrds,
}

// === impl Args ===

impl Args {
    /// Installs the bundle.
    ///
    /// # Errors
    ///
    /// When the cluster does not take it; what is wrong with the bundle is printed and in the exit code.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let install = self.install.clone();
        let checked = tokio::task::spawn_blocking(move || install.check(CertificateProvider::default()))
            .await
            .context("checking the bundle")?;
        let checked = match checked {
            Ok(checked) => checked,
            Err(lines) => {
                for line in lines {
                    eprintln!("{line}");
                }
                return Ok(ExitCode::FAILURE);
            }
        };
        let name = self.name_for(&checked)?;
        let parts = Parts::of(&name, &self.operator.operator_namespace, &checked.files)?;
        let cluster = self.cluster.connect().await?;
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &name);
        let before = cluster.read(&key).await.map_err(explained)?;
        check_before(&key, before.as_ref())?;

        let mut progress = Progress::new();
        let namespace = &self.operator.operator_namespace;
        progress.wait_for(&format!("storing the bundle in ConfigMaps in {namespace}"));
        parts.store(&cluster).await?;
        let written = self
            .apply(&cluster, &self.deployment(&name, &checked, &parts))
            .await?;
        parts.own(&cluster, &written).await?;
        progress.done(&format!(
            "{} {key}: {} in {}",
            done(before.as_ref(), &written),
            checked.bundle.csv().name(),
            self.install.namespace
        ));
        if !self.waiting.wait {
            return Ok(ExitCode::SUCCESS);
        }
        let installed = self
            .wait(&cluster, &key, before.as_ref(), &written, &mut progress)
            .await?;
        drop(progress);
        println!("{}", OneLine(&outcome::summary(&installed)));
        Ok(ExitCode::SUCCESS)
    }

    fn name_for(&self, checked: &Checked) -> anyhow::Result<String> {
        let name = self.name.as_ref().unwrap_or(&checked.bundle.package);
        arguments::bundle_deployment(name).map_err(|error| {
            anyhow::anyhow!(
                "the package {} of the bundle is not a valid name, set one with --name: {error}",
                OneLine(name)
            )
        })
    }

    /// The BundleDeployment as this command wants it: what it leaves out stays as others have set it.
    fn deployment(&self, name: &str, checked: &Checked, parts: &Parts) -> Value {
        let config_maps: Vec<_> = parts.names().map(|name| json!({ "name": name })).collect();
        let mut deployment = json!({
            "apiVersion": names::API_VERSION,
            "kind": BundleDeployment::kind(&()),
            "metadata": { "name": name },
            "spec": { "namespace": self.install.namespace, "source": { "configMaps": config_maps } },
        });
        if !self.adopt.is_empty() {
            deployment["spec"]["adopt"] = json!(self.adopt);
        }
        if let Some(policy) = self.deletion_policy {
            deployment["spec"]["deletionPolicy"] = json!(match policy {
                DeletionPolicy::KeepCrds => windlass_api::DeletionPolicy::KeepCRDs,
                DeletionPolicy::DeleteCrds => windlass_api::DeletionPolicy::DeleteCRDs,
            });
        }
        if !self.install.watch_namespaces.is_empty() {
            deployment["spec"]["watchNamespaces"] = json!(self.install.watch_namespaces);
        }
        if !checked.config.is_null() {
            deployment["spec"]["config"] = checked.config.clone();
        }
        if let Some(safety) = self.crd_upgrade_safety {
            deployment["spec"]["crdUpgradeSafety"] = json!(match safety {
                CrdUpgradeSafety::Strict => windlass_api::CrdUpgradeSafety::Strict,
                CrdUpgradeSafety::None => windlass_api::CrdUpgradeSafety::None,
            });
        }
        deployment
    }

    async fn apply(&self, cluster: &Cluster, deployment: &Value) -> anyhow::Result<Value> {
        let applied = cluster
            .apply(deployment, names::COMMAND, self.force_conflicts)
            .await;
        applied.map_err(|error| {
            let hint = if error.is_conflict() {
                "; to overwrite these fields, use --force-conflicts"
            } else {
                ""
            };
            anyhow::anyhow!("{}{hint}", explained(error))
        })
    }

    async fn wait(
        &self,
        cluster: &Cluster,
        key: &ObjectKey,
        before: Option<&Value>,
        written: &Value,
        progress: &mut Progress,
    ) -> anyhow::Result<Value> {
        let mut watched = Watched::new(before, written, &self.operator.operator_namespace);
        let judge = |object: Option<&Value>, after| watched.judge(object, after);
        follow::<BundleDeployment, _>(cluster, key, self.waiting.timeout, progress, judge).await
    }
}

/// What became of the BundleDeployment that was there `before`.
pub(in crate::commands) fn done(before: Option<&Value>, written: &Value) -> &'static str {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    match before {
        None => "Created",
        Some(before) if version(before) == version(written) => "Unchanged:",
        Some(_) => "Changed",
    }
}

/// Whether the BundleDeployment that is there can become what this command wants.
fn check_before(key: &ObjectKey, before: Option<&Value>) -> anyhow::Result<()> {
    let Some(before) = before else { return Ok(()) };
    if object::is_terminating(before) {
        bail!(
            "{key} is being deleted: wait until it is gone, for example with windlass uninstall {}",
            key.name
        );
    }
    for field in ["directory", "image"] {
        if before["spec"]["source"].get(field).is_some() {
            bail!(
                "{key} has spec.source.{field}, which this command did not set: change it there, or choose another \
                 --name"
            );
        }
    }
    Ok(())
}
