//! Asks registries, in tasks of their own.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use oci::{
    ImageReference, LayerLimits, RegistryClient, RegistryCredentials, RegistryOptions, client::PulledImage,
    layers::LayerError,
};
use tokio::sync::Semaphore;
use windlass_api::ImageSource;
use windlass_bundle::{
    Files,
    sources::{FILES, UNPACKED_BYTES},
};
use windlass_cluster::{Cluster, Index, kinds, telemetry::chain, worker::Queue};
use windlass_object::object;

use super::{
    catalogs::{CatalogImage, FollowedCatalog, SharedCatalogs},
    error::{NamedBy, PullError},
};
use crate::{
    bundle_deployment::{
        loading::bundle_digest,
        memory::{PullFailure, PulledBundle, Pulls},
    },
    context::Context,
};

/// How many images are pulled at once: each may fill memory up to the limits of an image and of a bundle.
const AT_ONCE: usize = 2;

/// How often a request is sent at a look. What fails then is said, and asked again at the next look.
const ATTEMPTS: u32 = 2;

/// The folders of a bundle.
const FOLDERS: [&str; 2] = ["manifests", "metadata"];

/// The type of a Secret with credentials for registries, and its key (core/v1 `SecretTypeDockerConfigJson`).
pub(super) const SECRET_TYPE: &str = "kubernetes.io/dockerconfigjson";
pub(super) const SECRET_KEY: &str = ".dockerconfigjson";

/// Pulls images for BundleDeployments.
pub(in crate::bundle_deployment) struct ImagePuller {
    pub(in crate::bundle_deployment) pulls: Pulls,
    pub(in crate::bundle_deployment) catalogs: Pulls<CatalogImage, FollowedCatalog>,
    pub(super) shared: SharedCatalogs,
    pub(super) index: Arc<Index>,
    options: RegistryOptions,
    slots: Semaphore,
    cluster: Cluster,
    namespace: String,
    queue: Arc<Queue<String>>,
}

/// An image that is asked for.
pub(super) struct WantedImage {
    pub(super) name: String,
    pub(super) source: ImageSource,
    pub(super) reference: ImageReference,
    pub(super) by: NamedBy,
    /// The digests over the files of images that are recorded, by these.
    pub(super) recorded: BTreeMap<String, String>,
}

impl ImagePuller {
    /// One that reads pull Secrets in the operator's namespace, and puts a BundleDeployment into `queue` when there is news.
    pub(in crate::bundle_deployment) fn new(
        context: &Context,
        queue: Arc<Queue<String>>,
        options: RegistryOptions,
        every: Duration,
    ) -> Self {
        Self {
            pulls: Pulls::new(every),
            catalogs: Pulls::new(every),
            shared: SharedCatalogs::default(),
            index: context.index.clone(),
            options: RegistryOptions {
                attempts: ATTEMPTS,
                ..options
            },
            slots: Semaphore::new(AT_ONCE),
            cluster: context.cluster.clone(),
            namespace: context.namespace.clone(),
            queue,
        }
    }

    /// Looks for an image, and has its BundleDeployment reconciled then, and again when it is to be looked for anew.
    pub(super) fn start(self: Arc<Self>, wanted: WantedImage) {
        tokio::spawn(async move {
            let outcome = {
                // Never closed.
                let _slot = self.slots.acquire().await;
                self.pull(&wanted).await
            };
            let outcome = outcome.map_err(|error| PullFailure::of(&error, wanted.by));
            let WantedImage { name, source, .. } = wanted;
            let is_by_digest = wanted.reference.digest.is_some();
            let now = Instant::now();
            let next = self.pulls.finish(&name, &source, is_by_digest, outcome, now);
            self.tell(name, next).await;
        });
    }

    /// Has a BundleDeployment reconciled now, and again after a time.
    pub(super) async fn tell(&self, name: String, again: Option<Duration>) {
        self.queue.add(name.clone());
        if let Some(again) = again {
            // The queue remembers of each name only when it is due first.
            tokio::time::sleep(again).await;
            self.queue.add(name);
        }
    }

    /// Whether `reason` is why the last look at an image or a catalog found nothing.
    pub(in crate::bundle_deployment) fn is_refused(&self, name: &str, reason: &str) -> bool {
        self.pulls.is_refused(name, reason) || self.catalogs.is_refused(name, reason)
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.pulls.forget(name);
        self.catalogs.forget(name);
    }

    /// What an image holds. One that is recorded, or was found before, is not pulled again.
    ///
    /// # Errors
    ///
    /// Why it cannot be pulled or unpacked.
    pub(super) async fn pull(&self, wanted: &WantedImage) -> Result<PulledBundle, PullError> {
        let WantedImage {
            name,
            source,
            reference,
            recorded,
            by: _,
        } = wanted;
        let failed =
            |cause, credentials: &_| PullError::registry(&source.reference, reference, cause, credentials);
        let mut access = None;
        let by_digest = match &reference.digest {
            Some(digest) => reference.with_digest(digest.clone()),
            None => {
                let (client, credentials) = access.insert(self.access(source, None).await?);
                let pinned = client.pin(reference, credentials).await;
                pinned.map_err(|cause| failed(cause, credentials))?
            }
        };
        let image = by_digest.to_string();
        let found = self.pulls.found(name, source);
        let known = found
            .filter(|(known, _)| *known == image)
            .map(|(_, digest)| digest)
            .or_else(|| recorded.get(&image).cloned());
        if let Some(digest) = known {
            return Ok(PulledBundle {
                image,
                digest,
                files: None,
            });
        }
        let (client, credentials) = match access {
            Some(access) => access,
            None => self.access(source, None).await?,
        };
        let pulled = client.pull(&by_digest, &credentials).await;
        let pulled = pulled.map_err(|cause| failed(cause, &credentials))?;
        let unpacked = tokio::task::spawn_blocking(move || {
            let files = image_files(&pulled)?;
            Ok((bundle_digest(&files), files))
        });
        let unpacked = unpacked
            .await
            .map_err(|error| PullError::Interrupted(image.clone(), error))?;
        let (digest, files) = unpacked.map_err(|error| PullError::Layers(image.clone(), error))?;
        Ok(PulledBundle {
            image,
            digest,
            files: Some(files),
        })
    }

    /// A client, of images up to `largest` bytes if that is not the usual limit, and what it shows. Each look has a client of its own:
    /// CAs of the system may have been renewed.
    pub(super) async fn access(
        &self,
        source: &ImageSource,
        largest: Option<u64>,
    ) -> Result<(RegistryClient, RegistryCredentials), PullError> {
        let options = RegistryOptions {
            largest_image: largest.unwrap_or(self.options.largest_image),
            ..self.options.clone()
        };
        let client = RegistryClient::new(options).map_err(|cause| PullError::Registry {
            reference: source.reference.clone(),
            cause,
            helper: None,
        })?;
        Ok((client, self.credentials(source).await?))
    }

    async fn credentials(&self, source: &ImageSource) -> Result<RegistryCredentials, PullError> {
        let mut credentials = RegistryCredentials::default();
        let Some(name) = &source.pull_secret else {
            return Ok(credentials);
        };
        let title = format!("{}/{name}", self.namespace);
        let key = kinds::SECRET.object(Some(&self.namespace), name);
        let secret = match self.cluster.read(&key).await {
            Ok(Some(secret)) => secret,
            Ok(None) => return Err(PullError::SecretMissing(title)),
            Err(error) => return Err(PullError::SecretUnread(title, chain(&error))),
        };
        let invalid = |problem: &str| PullError::Secret(format!("Secret {title}: {problem}"));
        if object::text(&secret, "/type") != Some(SECRET_TYPE) {
            return Err(invalid(&format!("type must be {SECRET_TYPE}")));
        }
        let encoded = secret.get("data").and_then(|data| data.get(SECRET_KEY)?.as_str());
        let content = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        let content = content.ok_or_else(|| invalid(&format!("data[{SECRET_KEY:?}] must be base64")))?;
        credentials
            .add(&format!("Secret {title}"), &content)
            .map_err(|error| PullError::Secret(error.to_string()))?;
        Ok(credentials)
    }
}

/// The files of the bundle in an image: what its folders `manifests` and `metadata` hold.
///
/// # Errors
///
/// The first thing in its layers that may not be in an image, or is more than a bundle may have.
pub fn image_files(image: &PulledImage) -> Result<Files, LayerError> {
    let limits = LayerLimits {
        bytes: UNPACKED_BYTES,
        entries: FILES,
    };
    image.files(&FOLDERS, limits)
}
