//! The bundle that a command is about, and how it is to be installed.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use serde_json::Value;
use windlass_bundle::{
    Bundle, Files, check,
    render::{self, CertificateProvider, ConversionMode, DeploymentConfig, InstallOptions, Rendered},
    rule, sources,
};
use windlass_object::Problem;

use crate::commands::arguments::namespace;

/// A bundle and how it is to be installed.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct InstallArgs {
    /// Bundle: a directory with manifests/ and metadata/, a .tar.gz of it, or - to read such an archive from stdin.
    pub(super) bundle: PathBuf,

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
        .map_err(|error| vec![Problem::of_bundle(error.file(), rule::SOURCE, error.to_string())])
}

// === impl InstallArgs ===

impl InstallArgs {
    /// Reads the bundle and checks it.
    ///
    /// # Errors
    ///
    /// A line for everything that is wrong with it.
    pub(super) fn read(&self) -> Result<ReadBundle, Vec<String>> {
        let files = load(&self.bundle).map_err(lines)?;
        let bundle = check::parse_for(&files, self.tolerance()).map_err(lines)?;
        Ok(ReadBundle { files, bundle })
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
            vec![Problem::of_bundle(
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
