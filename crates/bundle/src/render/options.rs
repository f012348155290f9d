//! The user's settings for the installed objects.

use windlass_object::GoDuration;

use super::deployment_config::DeploymentConfig;

/// The user's settings for the installed objects.
#[derive(Clone, Debug, PartialEq)]
pub struct InstallOptions {
    /// The namespace of the operator.
    pub namespace: String,
    /// The namespaces that the operator watches; empty means all.
    pub watch_namespaces: Vec<String>,
    /// Changes to the Deployments.
    pub config: DeploymentConfig,
    /// The issuer of the webhooks' certificates.
    pub certificates: CertificateProvider,
    /// The owner of the conversion webhooks.
    pub conversion: ConversionMode,
    /// Whether webhooks may block requests that the bundle itself needs.
    pub blocking_webhooks: bool,
}

/// The component that arms conversion webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConversionMode {
    /// Windlass, as the ClusterServiceVersion declares them.
    #[default]
    Managed,
    /// The operator itself: a CustomResourceDefinition is created with the conversion in its manifest, and
    /// Windlass does not change it.
    External,
}

/// The component that issues the webhooks' certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateProvider {
    /// Windlass: each Service gets a ServingCertificate, and its callers get the trust bundle injected.
    Windlass {
        /// Lifetimes of certificates; by default those of ServingCertificates.
        durations: Option<Durations>,
    },
    /// None: the output is that of OLM v1 without a certificate provider.
    None,
}

/// Lifetimes of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durations {
    /// Lifetime of a serving certificate.
    pub certificate: GoDuration,
    /// Lifetime of a CA.
    pub ca: GoDuration,
}

impl CertificateProvider {
    pub(super) fn durations(&self) -> Option<&Durations> {
        match self {
            Self::Windlass { durations } => durations.as_ref(),
            Self::None => None,
        }
    }
}

impl Default for CertificateProvider {
    fn default() -> Self {
        Self::Windlass { durations: None }
    }
}
