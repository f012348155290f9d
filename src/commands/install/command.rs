//! The arguments and the steps of `windlass install`.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context, bail};
use clap::ValueEnum;
use kube::Resource;
use policy::{CompiledPolicy, Engines};
use serde_json::{Value, json};
use windlass_adoption::AdoptionSource;
use windlass_api::{self, BundleDeployment, CatalogSource};
use windlass_bundle::{Bundle, render::CertificateProvider};
use windlass_cluster::{Cluster, kinds};
use windlass_crd::claims::Adoption;
use windlass_object::{ObjectKey, names, object, text::OneLine};

use super::{
    super::{
        arguments,
        bundle::{ConversionArg, INSTALLATION, InstallArgs, ReadBundle},
        bundle_location::BundleLocation,
        catalog::CatalogSelection,
        cluster::{ClusterArgs, OperatorArgs, decode, explain_error},
        missing_rights,
        policy::PolicyFiles,
        wait::{WaitArgs, wait_for_object},
    },
    dry_run::Preview,
    outcome::{self, Watched},
    source::InstallSource,
    watch_namespaces::WatchNamespaces,
};
use crate::terminal::Progress;

const AFTER_HELP: &str =
    "Omitted options revert to their defaults on upgrades, except --watch-namespace and --service-account.
Exits 1 if the bundle is refused, or not ready before the timeout.

Examples:
  windlass install quay.io/example/widgets-bundle:v1.2.0 --namespace widgets
  windlass install ./widgets-bundle --namespace widgets --dry-run";

/// Installs a bundle, or upgrades the installed bundle of that name.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(in crate::commands) struct Args {
    #[command(flatten)]
    pub(super) install: InstallArgs,

    #[command(flatten)]
    pub(super) catalog: CatalogSelection,

    /// Watch all namespaces, even if the installed operator does not.
    #[arg(long, conflicts_with = "watch_namespaces")]
    pub(super) all_namespaces: bool,

    /// Name of the BundleDeployment [default: package of the bundle].
    #[arg(long, value_parser = arguments::bundle_deployment)]
    pub(super) name: Option<String>,

    /// Breaking CRD changes: strict (refuse, default) or none.
    #[arg(long, value_enum, value_name = "MODE", hide_possible_values = true, help_heading = INSTALLATION)]
    crd_upgrade_safety: Option<CrdUpgradeSafety>,

    /// Take over an existing object, repeatable.
    #[arg(long, value_name = "KIND/NAME", help_heading = INSTALLATION)]
    pub(super) adopt: Vec<Adoption>,

    /// Take over an installation of Helm, OLM and others.
    #[arg(long, value_name = "SOURCE", help_heading = INSTALLATION)]
    adopt_from: Option<AdoptionSource>,

    /// On removal: keep-crds (default), keep-stored-version, delete-crds.
    #[arg(long, value_enum, value_name = "POLICY", hide_possible_values = true, help_heading = INSTALLATION)]
    deletion_policy: Option<DeletionPolicy>,

    /// ServiceAccount that writes the bundle's objects.
    #[arg(long, value_name = "NAME", value_parser = arguments::service_account, help_heading = INSTALLATION)]
    service_account: Option<String>,

    /// Secret of the operator for pulling the image.
    #[arg(long, value_name = "NAME", value_parser = arguments::pull_secret, help_heading = "Registries")]
    pub(super) pull_secret: Option<String>,

    /// The catalog channel that the operator follows, instead of a bundle.
    #[arg(skip)]
    pub(super) followed: Option<CatalogSource>,

    /// Return from a ServiceAccount to the operator's own rights.
    #[arg(long, conflicts_with = "service_account", help_heading = INSTALLATION)]
    pub(super) no_service_account: bool,

    /// Overwrite fields of other field managers.
    #[arg(long, help_heading = INSTALLATION)]
    force_conflicts: bool,

    /// Only show changes, refusals and granted rights.
    #[arg(long, help_heading = INSTALLATION)]
    pub(super) dry_run: bool,

    /// With --dry-run: additional or changed policies, repeatable.
    #[arg(long, value_name = "FILE", requires = "dry_run", help_heading = INSTALLATION)]
    policy: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) waiting: WaitArgs,

    #[command(flatten)]
    pub(super) operator: OperatorArgs,

    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CrdUpgradeSafety {
    /// Refuse breaking changes.
    Strict,
    /// Apply every change that the API server accepts.
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DeletionPolicy {
    /// Keep the CRDs and their objects.
    KeepCrds,
    /// Keep them, and serve only the version in which objects are stored.
    KeepStoredVersion,
    /// Delete the CRDs and their objects.
    DeleteCrds,
}

impl Args {
    /// Checks that the bundle can be located.
    ///
    /// # Errors
    ///
    /// When it is a package name, and no catalog is specified.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.catalog.is_set() {
            return Ok(());
        }
        self.install.bundle.ensure_not_package()
    }

    /// Installs the bundle.
    ///
    /// # Errors
    ///
    /// When the cluster rejects it; problems of the bundle are printed and set the exit code.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        if self.catalog.is_set() {
            return self.install_from_catalog().await;
        }
        self.install_bundle().await
    }

    pub(super) async fn install_bundle(&self) -> anyhow::Result<ExitCode> {
        let namespace = &self.operator.operator_namespace;
        if self.install.namespace == *namespace {
            bail!(
                "the namespace {namespace} belongs to the Windlass operator, and holds its keys: specify another one with \
             --namespace"
            );
        }
        let read = match &self.install.bundle {
            _ if self.followed.is_some() => None,
            BundleLocation::Image(_) if self.name.is_some() && !self.dry_run && self.adopt_from.is_none() => {
                None
            }
            _ => match self.install.read().await? {
                Ok(read) => Some(read),
                Err(lines) => return Ok(print_problems(&lines)),
            },
        };
        let name = self.resolve_name(read.as_ref())?;
        let source = match &self.followed {
            Some(followed) => InstallSource::Catalog(Box::new(followed.clone())),
            None => InstallSource::new(
                &self.install.bundle,
                self.pull_secret.as_deref(),
                read.as_ref().map(|read| &read.files),
                &name,
                namespace,
            )?,
        };
        let cluster = self.cluster.connect().await?;
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &name);
        let before = cluster.read(&key).await.map_err(explain_error)?;
        if let Some(before) = &before {
            check_before(&key, before)?;
            source.check_before(&key, before)?;
        }
        let watch = WatchNamespaces::new(
            &self.install.watch_namespaces,
            self.all_namespaces,
            before.as_ref(),
        );
        let install = InstallArgs {
            watch_namespaces: watch.names.clone(),
            ..self.install.clone()
        };
        let config = match &read {
            Some(read) => install
                .check(&read.bundle, CertificateProvider::default())
                .map(|checked| checked.config),
            None => install.checked_config(),
        };
        let config = match config {
            Ok(config) => config,
            Err(lines) => return Ok(print_problems(&lines)),
        };
        let mut deployment = self.deployment(&name, &config, &watch, &source);
        if let Some(account) = self.account(before.as_ref()) {
            deployment["spec"]["serviceAccountName"] = json!(account);
        }
        let mut progress = Progress::new(self.waiting.output);
        let takeover = match (&self.adopt_from, &read) {
            (Some(source), Some(read)) => {
                let takeover = self.takeover(&cluster, source, &mut deployment, &read.bundle);
                Some(takeover.await?)
            }
            _ => None,
        };
        if let Some(read) = &read
            && (self.dry_run || takeover.is_some())
        {
            if let Some(takeover) = &takeover {
                progress.print("adoption", &takeover.to_string());
            }
            let preview = self.preview(&cluster, &deployment, &read.bundle).await?;
            if self.dry_run || preview.is_refused() {
                progress.report("preview", &preview);
                return Ok(ExitCode::from(u8::from(preview.is_refused())));
            }
        }

        if watch.kept {
            progress.done(&format!(
                "Still watches {}: to watch all namespaces, use --all-namespaces",
                watch.names.join(", ")
            ));
        }
        if let Some(config_maps) = source.config_maps() {
            progress.wait_for(format!("storing the bundle in ConfigMaps in {namespace}"));
            config_maps.store(&cluster).await?;
        }
        let patience = self.waiting.timeout.0.unsigned_abs();
        if let Some(takeover) = &takeover {
            takeover.prepare(&cluster, &mut progress, patience).await?;
        }
        let written = self.apply(&cluster, &deployment).await?;
        if let Some(config_maps) = source.config_maps() {
            config_maps.set_owner(&cluster, &written).await?;
        }
        progress.done(&format!(
            "{} {key}: {} in {}",
            change_verb(before.as_ref(), &written),
            OneLine(&self.title(read.as_ref())),
            self.install.namespace
        ));
        if !self.waiting.wait {
            return Ok(ExitCode::SUCCESS);
        }
        let waited = self
            .wait(&cluster, &key, before.as_ref(), &written, &mut progress)
            .await;
        let installed = match waited {
            Ok(installed) => installed,
            Err(error) => {
                if let Ok(Some(object)) = cluster.read(&key).await
                    && let Ok(granting) = decode(object).and_then(|object| missing_rights::documents(&object))
                {
                    progress.print("missingRights", &granting);
                }
                return Err(error);
            }
        };
        if let Some(takeover) = &takeover {
            takeover.finish(&cluster, &mut progress, patience).await?;
        }
        progress.finish(&outcome::summary(&installed), json!({ "object": installed }));
        if let Some(takeover) = &takeover {
            progress.print("adoption", &format!("{}\n", takeover.next_steps()));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Previews the install.
    async fn preview(
        &self,
        cluster: &Cluster,
        deployment: &Value,
        bundle: &Bundle,
    ) -> anyhow::Result<Preview> {
        // With the fields that other field managers have set.
        let tried = cluster.apply_dry_run(deployment, names::COMMAND).await;
        let deployment = tried.map_err(explain_error)?;
        let policies = policies(&self.policy)?;
        Preview::new(cluster, deployment, bundle, &policies).await
    }

    /// Returns the ServiceAccount that writes the objects. The operator's own rights are used only on
    /// request.
    fn account<'a>(&'a self, before: Option<&'a Value>) -> Option<&'a str> {
        let before = before.and_then(|before| object::text(before, "/spec/serviceAccountName"));
        let kept = before.filter(|_| !self.no_service_account);
        self.service_account.as_deref().or(kept)
    }

    /// Returns the name of the bundle for messages.
    fn title(&self, read: Option<&ReadBundle>) -> String {
        match (&self.install.bundle, read) {
            (_, Some(read)) => read.bundle.csv().name().to_owned(),
            (BundleLocation::Image(image), None) => image.to_string(),
            (BundleLocation::Local(path), None) => path.display().to_string(),
            (BundleLocation::Package(package), None) => package.clone(),
        }
    }

    fn resolve_name(&self, read: Option<&ReadBundle>) -> anyhow::Result<String> {
        let package = read.map(|read| &read.bundle.package);
        let name = self.name.as_ref().or(package).context("set a --name")?;
        arguments::bundle_deployment(name).map_err(|error| {
            anyhow::anyhow!(
                "the package {} of the bundle is not a valid name: set a name with --name: {error}",
                OneLine(name)
            )
        })
    }

    /// Returns the BundleDeployment to apply, without the fields that this command does not manage.
    fn deployment(
        &self,
        name: &str,
        config: &Value,
        watch: &WatchNamespaces,
        source: &InstallSource,
    ) -> Value {
        let mut deployment = json!({
            "apiVersion": names::API_VERSION,
            "kind": BundleDeployment::kind(&()),
            "metadata": { "name": name },
            "spec": { "namespace": self.install.namespace, "source": source.spec() },
        });
        if !self.adopt.is_empty() {
            deployment["spec"]["adopt"] = json!(self.adopt);
        }
        if let Some(policy) = self.deletion_policy {
            deployment["spec"]["deletionPolicy"] = json!(match policy {
                DeletionPolicy::KeepCrds => windlass_api::DeletionPolicy::KeepCRDs,
                DeletionPolicy::KeepStoredVersion => windlass_api::DeletionPolicy::KeepStoredVersion,
                DeletionPolicy::DeleteCrds => windlass_api::DeletionPolicy::DeleteCRDs,
            });
        }
        if let Some(conversion) = self.install.conversion {
            deployment["spec"]["conversion"] = json!(match conversion {
                ConversionArg::Managed => windlass_api::ConversionManager::Managed,
                ConversionArg::External => windlass_api::ConversionManager::External,
            });
        }
        if self.install.allow_blocking_webhooks {
            deployment["spec"]["allowBlockingWebhooks"] = json!(true);
        }
        if watch.is_written() {
            deployment["spec"]["watchNamespaces"] = json!(watch.names);
        }
        if !config.is_null() {
            deployment["spec"]["config"] = config.clone();
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
            anyhow::anyhow!("{}{hint}", explain_error(error))
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
        wait_for_object::<BundleDeployment, _>(cluster, key, self.waiting.timeout, progress, judge).await
    }
}

/// Reads policies from files.
fn policies(paths: &[PathBuf]) -> anyhow::Result<Vec<Arc<CompiledPolicy>>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let read = PolicyFiles::read(paths, &Engines::built_in())?.into_valid()?;
    Ok(read.policies.into_iter().map(|policy| policy.compiled).collect())
}

fn print_problems(lines: &[String]) -> ExitCode {
    for line in lines {
        eprintln!("{line}");
    }
    ExitCode::FAILURE
}

/// Returns what happened to the BundleDeployment.
pub(in crate::commands) fn change_verb(before: Option<&Value>, written: &Value) -> &'static str {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    match before {
        None => "Created",
        Some(before) if version(before) == version(written) => "Unchanged:",
        Some(_) => "Changed",
    }
}

/// Checks that the existing BundleDeployment can be changed.
fn check_before(key: &ObjectKey, before: &Value) -> anyhow::Result<()> {
    if object::is_terminating(before) {
        bail!(
            "{key} is being deleted: wait until it is gone, for example with windlass uninstall {}",
            key.name
        );
    }
    Ok(())
}
