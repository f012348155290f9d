//! The bundle of a command, and its install settings.

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

/// The heading of install settings in `--help`.
pub(super) const INSTALLATION: &str = "Installation";

/// A bundle and its install settings.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct InstallArgs {
    /// Bundle: a directory, a .tar.gz or - (an archive on stdin), or an image with its registry.
    #[arg(value_parser = bundle_location::parser())]
    pub(super) bundle: BundleLocation,

    /// Namespace to install into.
    #[arg(short, long, value_parser = namespace)]
    pub(super) namespace: String,

    /// Namespace for the operator to watch, repeatable [default: all].
    #[arg(long = "watch-namespace", value_name = "NAMESPACE", value_parser = namespace)]
    pub(super) watch_namespaces: Vec<String>,

    /// Conversion of CRDs: managed (default) or external.
    #[arg(long, value_enum, value_name = "MODE", hide_possible_values = true, help_heading = INSTALLATION)]
    pub(super) conversion: Option<ConversionArg>,

    /// Install webhooks that can block their own pods.
    #[arg(long, help_heading = INSTALLATION)]
    pub(super) allow_blocking_webhooks: bool,

    /// Changes to the Deployments, as in OLM's deployment configuration.
    #[arg(long, value_name = "FILE", help_heading = INSTALLATION)]
    pub(super) config: Option<PathBuf>,

    #[command(flatten)]
    pub(super) registry: RegistryArgs,
}

/// Who manages the conversion of CustomResourceDefinitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ConversionArg {
    /// Windlass arms the conversions that the ClusterServiceVersion declares.
    Managed,
    /// The operator arms its conversion webhooks.
    External,
}

/// A bundle without problems.
#[derive(Debug)]
pub(super) struct ReadBundle {
    /// The files.
    pub(super) files: Files,
    /// The parsed content.
    pub(super) bundle: Bundle,
}

/// A bundle that was checked and rendered.
#[derive(Debug)]
pub(super) struct Checked {
    /// The objects that an install applies.
    pub(super) rendered: Rendered,
    /// The content of `--config`; null without it.
    pub(super) config: Value,
}

/// Loads the files of the bundle at `path`.
///
/// # Errors
///
/// Problems that prevent reading.
pub(super) fn load(path: &Path) -> Result<Files, Vec<Problem>> {
    sources::load(path)
        .map_err(|error| vec![Problem::in_bundle(error.file(), rule::SOURCE, error.to_string())])
}

impl InstallArgs {
    /// Reads or pulls the bundle and checks it. The inner error has a line for each problem.
    ///
    /// # Errors
    ///
    /// When the bundle cannot be pulled.
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

    /// Returns the checked content of `--config`; null without it.
    ///
    /// # Errors
    ///
    /// A line for each problem.
    pub(super) fn checked_config(&self) -> Result<Value, Vec<String>> {
        let (file, config) = self.read_config().map_err(lines)?;
        DeploymentConfig::from_value(&file, &config).map_err(lines)?;
        Ok(config)
    }

    /// Renders a bundle.
    ///
    /// # Errors
    ///
    /// A line for each problem with the install settings.
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

    /// Returns the name and the content of the `--config` file.
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
