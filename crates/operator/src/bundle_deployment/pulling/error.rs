//! Why an image gives no bundle.

use oci::{RegistryError, layers::LayerError};
use tokio::task::JoinError;

use crate::bundle_deployment::memory::PullFailure;

/// Why an image gives no files.
#[derive(Debug, thiserror::Error)]
pub(super) enum PullError {
    #[error("cannot pull {0}: {1}")]
    Registry(String, RegistryError),
    #[error("{0}: {1}; build the image anew")]
    Layers(String, LayerError),
    #[error("Secret {0} not found: create it, or correct spec.source.image.pullSecret")]
    SecretMissing(String),
    #[error("{0}; correct it, or change spec.source.image.pullSecret")]
    Secret(String),
    #[error("Secret {0} cannot be read: {1}")]
    SecretUnread(String, String),
    #[error("unpacking {0} was interrupted")]
    Interrupted(String, JoinError),
}

// === impl PullFailure ===

impl From<PullError> for PullFailure {
    fn from(error: PullError) -> Self {
        let (reason, is_transient, retry_after) = match &error {
            PullError::Registry(_, error) => (error.reason(), error.is_transient(), error.retry_after()),
            PullError::Layers(..) => ("ImageInvalid", false, None),
            // Whoever makes the BundleDeployment may make it next.
            PullError::SecretMissing(_) => ("PullSecretMissing", true, None),
            PullError::Secret(_) => ("PullSecretInvalid", false, None),
            PullError::SecretUnread(..) => ("PullSecretUnread", true, None),
            PullError::Interrupted(..) => ("PullInterrupted", true, None),
        };
        let advice = match reason {
            "ImageNotFound" => "; push it there, or correct spec.source.image.ref",
            "ImageDigestMismatch" => "; push the image again, or correct the digest in spec.source.image.ref",
            _ if is_transient => "; it is asked again",
            _ => "",
        };
        Self {
            reason,
            message: format!("{error}{advice}"),
            is_transient,
            retry_after,
        }
    }
}
