//! Why an image gives no bundle.

use oci::{RegistryError, layers::LayerError};
use tokio::task::JoinError;

use crate::bundle_deployment::memory::PullFailure;

/// Why an image gives no files.
#[derive(Debug, thiserror::Error)]
pub(super) enum PullError {
    #[error("cannot pull {reference}: {cause}")]
    Registry {
        reference: String,
        cause: RegistryError,
        /// The program that may have credentials, and is not run.
        helper: Option<String>,
    },
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
            PullError::Registry { cause, .. } => (cause.reason(), cause.is_transient(), cause.retry_after()),
            PullError::Layers(..) => ("ImageInvalid", false, None),
            // Whoever makes the BundleDeployment may make it next.
            PullError::SecretMissing(_) => ("PullSecretMissing", true, None),
            PullError::Secret(_) => ("PullSecretInvalid", false, None),
            PullError::SecretUnread(..) => ("PullSecretUnread", true, None),
            PullError::Interrupted(..) => ("PullInterrupted", true, None),
        };
        let advice = match (reason, &error) {
            ("ImageNotFound", _) => "; push it there, or correct spec.source.image.ref".to_owned(),
            ("ImageDigestMismatch", _) => {
                "; push the image again, or correct the digest in spec.source.image.ref".to_owned()
            }
            (
                "CredentialsMissing",
                PullError::Registry {
                    helper: Some(helper), ..
                },
            ) => format!(
                "; {helper}, which the Secret names, is not run: put the credentials into auths of the Secret in \
                 spec.source.image.pullSecret"
            ),
            ("CredentialsMissing", _) => {
                "; put them into a Secret, and name it in spec.source.image.pullSecret".to_owned()
            }
            ("CredentialsRefused", _) => {
                "; correct them in the Secret in spec.source.image.pullSecret".to_owned()
            }
            _ if is_transient => "; it is asked again".to_owned(),
            _ => String::new(),
        };
        Self {
            reason,
            message: format!("{error}{advice}"),
            is_transient,
            retry_after,
        }
    }
}
