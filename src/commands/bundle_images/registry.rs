//! Registry client and credentials of commands.

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

/// Access to a registry.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::commands) struct RegistryArgs {
    /// Credentials file [default: $REGISTRY_AUTH_FILE, or Docker's].
    #[arg(long, value_name = "FILE", help_heading = "Registries")]
    authfile: Option<PathBuf>,

    #[command(flatten)]
    access: RegistryAccess,
}

/// The files of a pulled bundle, and the digest of its image.
pub(in crate::commands) struct PulledFiles {
    /// The image, with its digest.
    pub(in crate::commands) image: String,
    /// The files.
    pub(in crate::commands) files: Files,
}

/// Parses an image reference.
///
/// # Errors
///
/// When `text` is not an image reference.
pub(in crate::commands) fn reference(text: &str) -> Result<ImageReference, String> {
    text.parse()
        .map_err(|error: oci::reference::ReferenceError| error.to_string())
}

impl RegistryArgs {
    /// Returns a client of the registry.
    ///
    /// # Errors
    ///
    /// When a given file cannot be used.
    pub(in crate::commands) fn client(&self) -> anyhow::Result<RegistryClient> {
        Ok(RegistryClient::new(self.access.options()?)?)
    }

    /// Returns a client that accepts images of up to `largest` bytes.
    ///
    /// # Errors
    ///
    /// When a given file cannot be used.
    pub(in crate::commands) fn client_for(&self, largest: u64) -> anyhow::Result<RegistryClient> {
        Ok(RegistryClient::new(RegistryOptions {
            largest_image: largest,
            ..self.access.options()?
        })?)
    }

    /// Returns the registry credentials; none if the default file does not exist.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or parsed.
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
    /// When the image cannot be pulled, or is not a bundle image.
    pub(in crate::commands) async fn pull(&self, image: &ImageReference) -> anyhow::Result<PulledFiles> {
        let credentials = self.credentials()?;
        let pulled = self.client()?.pull(image, &credentials).await;
        let pulled = pulled.map_err(|error| explain_registry_error("pull", image, &credentials, &error))?;
        let by_digest = image.with_digest(pulled.digest.clone()).to_string();
        let unpacked = tokio::task::spawn_blocking(move || image_files(&pulled)).await?;
        let files = unpacked.with_context(|| format!("cannot unpack {by_digest}"))?;
        if files.is_empty() {
            bail!("{by_digest} has no manifests and no metadata: it is not a registry+v1 bundle image");
        }
        Ok(PulledFiles {
            image: by_digest,
            files,
        })
    }
}

/// Describes why an image cannot be pulled or pushed, with advice.
pub(in crate::commands) fn explain_registry_error(
    what: &str,
    image: &ImageReference,
    credentials: &RegistryCredentials,
    error: &RegistryError,
) -> anyhow::Error {
    let registry = &image.registry;
    let advice = match (error.reason(), credentials.helper(image)) {
        ("CredentialsMissing", Some(helper)) => {
            format!(
                "; credential helper {helper} is not supported: specify a file with credentials with --authfile"
            )
        }
        ("CredentialsMissing", None) => {
            format!("; run docker login {registry}, or specify a file with --authfile")
        }
        ("CredentialsRefused", _) => {
            format!("; run docker login {registry} again, or specify another --authfile")
        }
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
