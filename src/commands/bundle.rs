//! The bundle that a command is about, and how it is to be installed.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::ValueEnum;
use serde_json::Value;
use tokio::task::spawn_blocking;
use windlass_bundle::{
    Bundle, Files, check,
    render::{self, CertificateProvider, ConversionMode, DeploymentConfig, InstallOptions, Rendered},
    rule, sources,
};
use windlass_object::Problem;

use crate::commands::{
    arguments::namespace,
    bundle_images::RegistryArgs,
    bundle_location::{self, BundleLocation, needs_catalog},
};

/// A bundle and how it is to be installed.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct InstallArgs {
    /// Bundle: a directory with manifests/ and metadata/, a .tar.gz of it, or - to read such an archive from stdin; or an image with
    /// its registry. What exists, and what begins with . or /, is of this machine.
    #[arg(value_parser = bundle_location::parser())]
    pub(super) bundle: BundleLocation,

    /// Namespace to install into.
    #[arg(short, long, value_parser = namespace)]
    pub(super) namespace: String,

    /// Namespace for the operator to watch; can be repeated [default: all namespaces].
    #[arg(long = "watch-namespace", value_name = "NAMESPACE", value_parser = namespace)]
    pub(super) watch_namespaces: Vec<String>,

    /// Who manages the conversion of the bundle's CustomResourceDefinitions [default: managed].
    #[arg(long, value_enum)]
    pub(super) conversion: Option<ConversionArg>,

    /// Install webhooks that may keep their own pods from coming up again.
    #[arg(long)]
    pub(super) allow_blocking_webhooks: bool,

    /// File with changes to the Deployments: env, envFrom, volumes, volumeMounts, tolerations, resources, nodeSelector,
    /// affinity and annotations as in OLM's deployment configuration, and windlass with readinessProbe, preStop,
    /// rollingUpdate and canary: set these to false to turn off what is done for Deployments that serve webhooks (upgrades
    /// keep old pods until nobody calls them all the same); and replicas, the number of their replicas.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    #[command(flatten)]
    pub(super) registry: RegistryArgs,
}

/// Who manages the conversion of CustomResourceDefinitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ConversionArg {
    /// Windlass arms what the ClusterServiceVersion declares.
    Managed,
    /// The operator arms its conversion webhooks itself.
    External,
}

/// A bundle that has no problem.
#[derive(Debug)]
pub(super) struct ReadBundle {
    /// Its files.
    pub(super) files: Files,
    /// What they say.
    pub(super) bundle: Bundle,
}

/// A bundle that can be installed as it is asked for.
#[derive(Debug)]
pub(super) struct Checked {
    /// What an install applies.
    pub(super) rendered: Rendered,
    /// The changes to the Deployments as they were written; null where there are none.
    pub(super) config: Value,
}

/// The files of the bundle at `path`.
///
/// # Errors
///
/// What keeps it from being read.
pub(super) fn load(path: &Path) -> Result<Files, Vec<Problem>> {
    sources::load(path)
        .map_err(|error| vec![Problem::in_bundle(error.file(), rule::SOURCE, error.to_string())])
}

// === impl InstallArgs ===

impl InstallArgs {
    /// Reads or pulls the bundle and checks it: a line for everything that is wrong with it.
    ///
    /// # Errors
    ///
    /// When it cannot be pulled.
    pub(super) async fn read(&self) -> anyhow::Result<Result<ReadBundle, Vec<String>>> {
        let tolerance = self.tolerance();
        let parsed = move |files: Files| {
            let bundle = check::parse_for(&files, tolerance).map_err(lines)?;
            Ok(ReadBundle { files, bundle })
        };
        let read = match self.bundle.clone() {
            BundleLocation::Image(image) => {
                let files = self.registry.pull(&image).await?.files;
                spawn_blocking(move || parsed(files))
            }
            BundleLocation::Package(package) => return Err(needs_catalog(&package)),
            BundleLocation::Local(path) => {
                spawn_blocking(move || load(&path).map_err(lines).and_then(parsed))
            }
        };
        read.await.context("checking the bundle")
    }

    /// The changes to the Deployments as they were written, checked; null where there are none.
    ///
    /// # Errors
    ///
    /// A line for everything that is wrong with them.
    pub(super) fn checked_config(&self) -> Result<Value, Vec<String>> {
        let (file, config) = self.read_config().map_err(lines)?;
        DeploymentConfig::from_value(&file, &config).map_err(lines)?;
        Ok(config)
    }

    /// Renders a bundle.
    ///
    /// # Errors
    ///
    /// A line for everything that is wrong with how it is to be installed.
    pub(super) fn check(
        &self,
        bundle: &Bundle,
        certificates: CertificateProvider,
    ) -> Result<Checked, Vec<String>> {
        let (file, config) = self.read_config().map_err(lines)?;
        let options = InstallOptions {
            namespace: self.namespace.clone(),
            watch_namespaces: self.watch_namespaces.clone(),
            config: DeploymentConfig::from_value(&file, &config).map_err(lines)?,
            certificates,
            conversion: self.conversion_mode(),
            blocking_webhooks: self.allow_blocking_webhooks,
        };
        let rendered = render::render(bundle, &options).map_err(lines)?;
        Ok(Checked { rendered, config })
    }

    fn tolerance(&self) -> check::Tolerance {
        check::Tolerance {
            undeclared_conversions: self.conversion_mode() == ConversionMode::External,
            blocking_webhooks: self.allow_blocking_webhooks,
        }
    }

    fn conversion_mode(&self) -> ConversionMode {
        match self.conversion {
            Some(ConversionArg::External) => ConversionMode::External,
            Some(ConversionArg::Managed) | None => ConversionMode::Managed,
        }
    }

    /// The name of the file with changes to the Deployments, and what it holds.
    fn read_config(&self) -> Result<(String, Value), Vec<Problem>> {
        let Some(path) = &self.config else {
            return Ok((String::new(), Value::Null));
        };
        let file = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| {
            vec![Problem::in_bundle(
                &file,
                rule::SOURCE,
                format!("cannot be read: {error}"),
            )]
        })?;
        let config = DeploymentConfig::document(&file, &bytes)?;
        Ok((file, config))
    }
}

fn lines(problems: Vec<impl Display>) -> Vec<String> {
    problems.into_iter().map(|problem| problem.to_string()).collect()
}
