//! The arguments, and the steps of an install.

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
        bundle::{ConversionArg, InstallArgs, ReadBundle},
        bundle_location::BundleLocation,
        catalog::CatalogSelection,
        cluster::{ClusterArgs, OperatorArgs, explained, typed},
        follow::{WaitArgs, follow},
        missing_rights,
        policy::PolicyFiles,
    },
    dry_run::Preview,
    outcome::{self, Watched},
    source::InstallSource,
    watch_namespaces::WatchNamespaces,
};
use crate::terminal::Progress;

/// Installs a bundle, or upgrades the bundle that is installed under that name.
///
/// Checks the bundle first: if it has problems, prints them, one per line, and changes nothing. Stores the bundle in
/// ConfigMaps in the operator's namespace, from where the operator reads it. Prints progress. Exits 0 when every
/// webhook is proven and armed, 1 if the bundle is refused or the timeout expires.
///
/// A bundle in an image is pulled by the operator. This command pulls it too, with the credentials of its user, to check it first,
/// unless it is given --name and not --dry-run.
///
/// Options that are omitted when the bundle is upgraded revert to their defaults, except for --watch-namespace: an
/// operator never gets to watch more than before unless that is said.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    #[command(flatten)]
    pub(super) install: InstallArgs,

    #[command(flatten)]
    pub(super) catalog: CatalogSelection,

    /// Let the operator watch all namespaces, although the installed one watches only some.
    #[arg(long, conflicts_with = "watch_namespaces")]
    pub(super) all_namespaces: bool,

    /// Name of the BundleDeployment [default: the package of the bundle].
    #[arg(long, value_parser = arguments::bundle_deployment)]
    pub(super) name: Option<String>,

    /// Whether to refuse CustomResourceDefinition changes that would break clients or stored objects [default: strict].
    #[arg(long, value_enum)]
    crd_upgrade_safety: Option<CrdUpgradeSafety>,

    /// Take over an existing object of the bundle that Windlass did not create, for example
    /// CustomResourceDefinition/widgets.example.com. Can be repeated.
    #[arg(long, value_name = "KIND/NAME")]
    pub(super) adopt: Vec<Adoption>,

    /// Take over what is installed already, without a failed request: cert-manager/[NAMESPACE/]CERTIFICATE for what a
    /// Certificate of cert-manager serves, helm/[NAMESPACE/]RELEASE for a release of Helm,
    /// olm/[NAMESPACE/]CLUSTERSERVICEVERSION for an operator that OLM v0 runs, service-ca/[NAMESPACE/]SERVICE for what a Service
    /// serves under a certificate of OpenShift's service-ca. What the bundle has too is adopted, the rest is kept until
    /// `windlass adoption confirm`; `windlass adoption undo` goes back, but not to OLM.
    #[arg(long, value_name = "SOURCE")]
    adopt_from: Option<AdoptionSource>,

    /// What to do with the CustomResourceDefinitions of the bundle, and with all their objects, when it is removed
    /// [default: keep-crds].
    #[arg(long, value_enum)]
    deletion_policy: Option<DeletionPolicy>,

    /// ServiceAccount, in the namespace of the operator to install, as which the objects of the bundle are written, so that
    /// it gets no rights that this account lacks. Kept when the bundle is upgraded. If rights are missing, prints roles and
    /// bindings that would give them, as YAML.
    #[arg(long, value_name = "NAME", value_parser = arguments::service_account)]
    service_account: Option<String>,

    /// Secret of type kubernetes.io/dockerconfigjson in the operator's namespace, with which the operator pulls the image.
    #[arg(long, value_name = "NAME", value_parser = arguments::pull_secret)]
    pub(super) pull_secret: Option<String>,

    /// What the operator is to follow, in the place of a bundle.
    #[arg(skip)]
    pub(super) followed: Option<CatalogSource>,

    /// Write the objects of the bundle with the rights of Windlass, although a ServiceAccount was named before.
    #[arg(long, conflicts_with = "service_account")]
    pub(super) no_service_account: bool,

    /// Overwrite fields of the BundleDeployment that another field manager has set.
    #[arg(long)]
    force_conflicts: bool,

    /// Only show what the install would create, change and remove, what would be refused, and which rights it would
    /// grant. Writes nothing; exits 1 if the install would be refused.
    #[arg(long)]
    pub(super) dry_run: bool,

    /// File, or folder of files, with policies that would be in the cluster, too, or be changed; can be repeated.
    #[arg(long, value_name = "FILE", requires = "dry_run")]
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
    /// Refuse them.
    Strict,
    /// Apply every change that the API server accepts.
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DeletionPolicy {
    /// Keep them.
    KeepCrds,
    /// Keep them, and serve only the version in which objects are stored.
    KeepStoredVersion,
    /// Delete them.
    DeleteCrds,
}

// === impl Args ===

impl Args {
    /// Whether the bundle can be anywhere.
    ///
    /// # Errors
    ///
    /// When it is the name of a package, and no catalog is named.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.catalog.is_there() {
            return Ok(());
        }
        self.install.bundle.without_catalog()
    }

    /// Installs the bundle.
    ///
    /// # Errors
    ///
    /// When the cluster does not take it; what is wrong with the bundle is printed and in the exit code.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        if self.catalog.is_there() {
            return self.install_from_catalog().await;
        }
        self.install_bundle().await
    }

    /// Installs the bundle, wherever it is.
    pub(super) async fn install_bundle(&self) -> anyhow::Result<ExitCode> {
        let namespace = &self.operator.operator_namespace;
        if self.install.namespace == *namespace {
            bail!(
                "the namespace {namespace} is that of the Windlass operator, and holds its keys: choose another with \
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
                Err(lines) => return Ok(refused(&lines)),
            },
        };
        let name = self.name_for(read.as_ref())?;
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
        let before = cluster.read(&key).await.map_err(explained)?;
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
            Err(lines) => return Ok(refused(&lines)),
        };
        let mut deployment = self.deployment(&name, &config, &watch, &source);
        if let Some(account) = self.account(before.as_ref()) {
            deployment["spec"]["serviceAccountName"] = json!(account);
        }
        let mut progress = Progress::new(self.waiting.output);
        let adopting = match (&self.adopt_from, &read) {
            (Some(source), Some(read)) => {
                let adopting = self.adopting(&cluster, source, &mut deployment, &read.bundle);
                Some(adopting.await?)
            }
            _ => None,
        };
        if let Some(read) = &read
            && (self.dry_run || adopting.is_some())
        {
            if let Some(adopting) = &adopting {
                progress.print("adoption", &adopting.to_string());
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
        if let Some(parts) = source.parts() {
            progress.wait_for(format!("storing the bundle in ConfigMaps in {namespace}"));
            parts.store(&cluster).await?;
        }
        let patience = self.waiting.timeout.0.unsigned_abs();
        if let Some(adopting) = &adopting {
            adopting.prepare(&cluster, &mut progress, patience).await?;
        }
        let written = self.apply(&cluster, &deployment).await?;
        if let Some(parts) = source.parts() {
            parts.own(&cluster, &written).await?;
        }
        progress.done(&format!(
            "{} {key}: {} in {}",
            done(before.as_ref(), &written),
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
                    && let Ok(granting) = typed(object).and_then(|object| missing_rights::documents(&object))
                {
                    progress.print("missingRights", &granting);
                }
                return Err(error);
            }
        };
        if let Some(adopting) = &adopting {
            adopting.settle(&cluster, &mut progress, patience).await?;
        }
        progress.finish(&outcome::summary(&installed), json!({ "object": installed }));
        if let Some(adopting) = &adopting {
            progress.print("adoption", &format!("{}\n", adopting.afterwards()));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What would become of it.
    async fn preview(
        &self,
        cluster: &Cluster,
        deployment: &Value,
        bundle: &Bundle,
    ) -> anyhow::Result<Preview> {
        // As it would be with what others have set in it.
        let tried = cluster.apply_dry_run(deployment, names::COMMAND).await;
        let deployment = tried.map_err(explained)?;
        let policies = policies(&self.policy)?;
        Preview::of(cluster, deployment, bundle, &policies).await
    }

    /// As whom the objects are to be written: nobody gets the rights of Windlass unless that is said.
    fn account<'a>(&'a self, before: Option<&'a Value>) -> Option<&'a str> {
        let before = before.and_then(|before| object::text(before, "/spec/serviceAccountName"));
        let kept = before.filter(|_| !self.no_service_account);
        self.service_account.as_deref().or(kept)
    }

    /// What the bundle is called.
    fn title(&self, read: Option<&ReadBundle>) -> String {
        match (&self.install.bundle, read) {
            (_, Some(read)) => read.bundle.csv().name().to_owned(),
            (BundleLocation::Image(image), None) => image.to_string(),
            (BundleLocation::Local(path), None) => path.display().to_string(),
            (BundleLocation::Package(package), None) => package.clone(),
        }
    }

    fn name_for(&self, read: Option<&ReadBundle>) -> anyhow::Result<String> {
        let package = read.map(|read| &read.bundle.package);
        let name = self.name.as_ref().or(package).context("set a --name")?;
        arguments::bundle_deployment(name).map_err(|error| {
            anyhow::anyhow!(
                "the package {} of the bundle is not a valid name, set one with --name: {error}",
                OneLine(name)
            )
        })
    }

    /// The BundleDeployment as this command wants it: what it leaves out stays as others have set it.
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

/// The policies in these files.
fn policies(paths: &[PathBuf]) -> anyhow::Result<Vec<Arc<CompiledPolicy>>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let read = PolicyFiles::read(paths, &Engines::built_in())?.without_problems()?;
    Ok(read.policies.into_iter().map(|policy| policy.compiled).collect())
}

/// Prints what is wrong.
fn refused(lines: &[String]) -> ExitCode {
    for line in lines {
        eprintln!("{line}");
    }
    ExitCode::FAILURE
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
fn check_before(key: &ObjectKey, before: &Value) -> anyhow::Result<()> {
    if object::is_terminating(before) {
        bail!(
            "{key} is being deleted: wait until it is gone, for example with windlass uninstall {}",
            key.name
        );
    }
    Ok(())
}
