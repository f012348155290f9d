//! The registry that a command asks, and what it is shown.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow, bail};
use oci::{ImageReference, RegistryClient, RegistryCredentials, RegistryError, RegistryOptions};
use windlass_bundle::Files;
use windlass_operator::bundle_deployment::image_files;

use crate::commands::registry_access::RegistryAccess;

/// How a registry is asked.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::commands) struct RegistryArgs {
    /// File with credentials, as docker login writes it [default: $REGISTRY_AUTH_FILE, else config.json in $DOCKER_CONFIG or ~/.docker].
    #[arg(long, value_name = "FILE")]
    authfile: Option<PathBuf>,

    #[command(flatten)]
    access: RegistryAccess,
}

/// A bundle that was pulled.
pub(in crate::commands) struct PulledFiles {
    /// Its image, by its digest.
    pub(in crate::commands) image: String,
    /// Its files.
    pub(in crate::commands) files: Files,
}

/// What an image is called.
///
/// # Errors
///
/// When `text` is no reference.
pub(in crate::commands) fn reference(text: &str) -> Result<ImageReference, String> {
    text.parse()
        .map_err(|error: oci::reference::ReferenceError| error.to_string())
}

// === impl RegistryArgs ===

impl RegistryArgs {
    /// A client of the registry.
    ///
    /// # Errors
    ///
    /// When a file that was given cannot be used.
    pub(in crate::commands) fn client(&self) -> anyhow::Result<RegistryClient> {
        Ok(RegistryClient::new(self.access.options()?)?)
    }

    /// A client that takes images of up to `largest` bytes.
    ///
    /// # Errors
    ///
    /// When a file that was given cannot be used.
    pub(in crate::commands) fn client_for(&self, largest: u64) -> anyhow::Result<RegistryClient> {
        Ok(RegistryClient::new(RegistryOptions {
            largest_image: largest,
            ..self.access.options()?
        })?)
    }

    /// What registries are shown: nothing where there is no file, unless one was asked for.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is not what it is to be.
    pub(in crate::commands) fn credentials(&self) -> anyhow::Result<RegistryCredentials> {
        let named = self.authfile.clone().or_else(|| path_in("REGISTRY_AUTH_FILE"));
        let is_asked = named.is_some();
        let mut credentials = RegistryCredentials::default();
        let Some(path) = named.or_else(docker_config) else {
            return Ok(credentials);
        };
        match fs::read(&path) {
            Ok(content) => credentials.add(&path.display().to_string(), &content)?,
            Err(error) if error.kind() == ErrorKind::NotFound && !is_asked => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
        Ok(credentials)
    }

    /// Pulls a bundle.
    ///
    /// # Errors
    ///
    /// Why it cannot be pulled, or is no bundle.
    pub(in crate::commands) async fn pull(&self, image: &ImageReference) -> anyhow::Result<PulledFiles> {
        let credentials = self.credentials()?;
        let pulled = self.client()?.pull(image, &credentials).await;
        let pulled = pulled.map_err(|error| explain_registry_error("pull", image, &credentials, &error))?;
        let by_digest = image.with_digest(pulled.digest.clone()).to_string();
        let unpacked = tokio::task::spawn_blocking(move || image_files(&pulled)).await?;
        let files = unpacked.with_context(|| format!("cannot unpack {by_digest}"))?;
        if files.is_empty() {
            bail!("{by_digest} has neither manifests nor metadata: it holds no registry+v1 bundle");
        }
        Ok(PulledFiles {
            image: by_digest,
            files,
        })
    }
}

/// Why an image cannot be pulled or pushed, and what its user can do about it.
pub(in crate::commands) fn explain_registry_error(
    what: &str,
    image: &ImageReference,
    credentials: &RegistryCredentials,
    error: &RegistryError,
) -> anyhow::Error {
    let registry = &image.registry;
    let advice = match (error.reason(), credentials.helper(image)) {
        ("CredentialsMissing", Some(helper)) => {
            format!("; {helper} is not run: name a file that has them with --authfile")
        }
        ("CredentialsMissing", None) => {
            format!("; use docker login {registry}, or name a file with --authfile")
        }
        ("CredentialsRefused", _) => format!("; use docker login {registry} again, or another --authfile"),
        _ => String::new(),
    };
    anyhow!("cannot {what} {image}: {error}{advice}")
}

fn docker_config() -> Option<PathBuf> {
    let folder = path_in("DOCKER_CONFIG").or_else(|| Some(path_in("HOME")?.join(".docker")));
    folder.map(|folder| folder.join(Path::new("config.json")))
}

fn path_in(variable: &str) -> Option<PathBuf> {
    let path = env::var_os(variable).filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}
