//! Why an image gives no bundle, or no catalog.

use oci::{ImageReference, RegistryCredentials, RegistryError, layers::LayerError};
use tokio::task::JoinError;

use super::catalog_image::CatalogImageError;
use crate::bundle_deployment::memory::PullFailure;

/// Who names an image, and can name another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// `spec.source.image`.
    Image,
    /// `spec.source.catalog`: the catalog itself.
    Catalog,
    /// The catalog that `spec.source.catalog` names.
    CatalogEntry,
}

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
    #[error("{0}: {1}; rebuild the image")]
    Layers(String, LayerError),
    #[error("Secret {0} not found")]
    SecretMissing(String),
    #[error("{0}")]
    Secret(String),
    #[error("Secret {0} cannot be read: {1}")]
    SecretUnread(String, String),
    #[error("unpacking {0} was interrupted")]
    Interrupted(String, JoinError),
    #[error("cannot read the catalog {0}: {1}")]
    Catalog(String, CatalogImageError),
    /// What is wrong with the package, in a catalog that was read.
    #[error("{0}")]
    CatalogInvalid(String),
    #[error("the catalog {catalog} has no package {package}")]
    PackageMissing { catalog: String, package: String },
}

impl PullError {
    /// Why the image that is written as `text` does not come from its registry, which was shown `credentials`.
    pub(super) fn registry(
        text: &str,
        image: &ImageReference,
        cause: RegistryError,
        credentials: &RegistryCredentials,
    ) -> Self {
        Self::Registry {
            reference: text.to_owned(),
            cause,
            helper: credentials.helper(image),
        }
    }
}

impl NamedBy {
    /// The field that says where an image is, or where what names it is.
    fn field(self) -> &'static str {
        match self {
            Self::Image => "spec.source.image",
            Self::Catalog | Self::CatalogEntry => "spec.source.catalog",
        }
    }

    /// What to do about an image that is not there, or is another one, beside pushing it.
    fn correction(self, what: &str) -> String {
        match self {
            Self::CatalogEntry => "ask the maintainer of the catalog to correct it".to_owned(),
            _ => format!("correct {what}{}.ref", self.field()),
        }
    }
}

impl PullFailure {
    /// What is said of an image that `by` names.
    pub(super) fn of(error: &PullError, by: NamedBy) -> Self {
        let (reason, is_transient, retry_after) = match error {
            PullError::Registry { cause, .. } => (cause.reason(), cause.is_transient(), cause.retry_after()),
            PullError::Layers(..) => ("ImageInvalid", false, None),
            // Whoever makes the BundleDeployment may make it next.
            PullError::SecretMissing(_) => ("PullSecretMissing", true, None),
            PullError::Secret(_) => ("PullSecretInvalid", false, None),
            PullError::SecretUnread(..) => ("PullSecretUnread", true, None),
            PullError::Interrupted(..) => ("PullInterrupted", true, None),
            PullError::Catalog(_, CatalogImageError::Registry(cause)) => {
                (cause.reason(), cause.is_transient(), cause.retry_after())
            }
            PullError::Catalog(_, CatalogImageError::Interrupted(_)) => ("PullInterrupted", true, None),
            PullError::Catalog(..) | PullError::CatalogInvalid(_) => ("CatalogInvalid", false, None),
            PullError::PackageMissing { .. } => ("PackageMissing", false, None),
        };
        let field = by.field();
        let advice = match (reason, error) {
            ("PullSecretMissing", _) => format!(": create it, or correct {field}.pullSecret"),
            ("PullSecretInvalid", _) => format!("; correct it, or change {field}.pullSecret"),
            ("PackageMissing", _) => format!("; correct {field}.package, or {field}.ref"),
            ("ImageNotFound", _) => format!("; push it there, or {}", by.correction("")),
            ("ImageDigestMismatch", _) => {
                format!("; push the image again, or {}", by.correction("the digest in "))
            }
            (
                "CredentialsMissing",
                PullError::Registry {
                    helper: Some(helper), ..
                },
            ) => format!(
                "; {helper}, which the Secret names, is not run: put the credentials into auths of the Secret in \
                 {field}.pullSecret"
            ),
            ("CredentialsMissing", _) => {
                format!("; put them into a Secret, and name it in {field}.pullSecret")
            }
            ("CredentialsRefused", _) => format!("; correct them in the Secret in {field}.pullSecret"),
            _ if is_transient => "; retrying".to_owned(),
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
