//! How a bundle is to be installed.

use windlass_object::GoDuration;

use super::deployment_config::DeploymentConfig;

/// How a bundle is to be installed.
#[derive(Clone, Debug, PartialEq)]
pub struct InstallOptions {
    /// The namespace of the operator.
    pub namespace: String,
    /// The namespaces that it watches; none: all.
    pub watch_namespaces: Vec<String>,
    /// Changes to its Deployments.
    pub config: DeploymentConfig,
    /// Who gives its webhooks certificates.
    pub certificates: CertificateProvider,
    /// Who arms its conversion webhooks.
    pub conversion: ConversionMode,
    /// Whether its webhooks may block what it needs itself.
    pub blocking_webhooks: bool,
}

/// Who arms conversion webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConversionMode {
    /// Windlass, as the ClusterServiceVersion declares them.
    #[default]
    Managed,
    /// The operator itself: a CustomResourceDefinition is born with the conversion of its manifest, and nobody else
    /// touches it.
    External,
}

/// Who gives webhooks their certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateProvider {
    /// Windlass: a ServingCertificate is rendered for each Service, and what calls it asks for its trust bundle.
    Windlass {
        /// How long certificates are valid; by default as long as ServingCertificates are by default.
        durations: Option<Durations>,
    },
    /// Nobody: what is rendered is what OLM v1 renders without a certificate provider.
    None,
}

/// How long certificates are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durations {
    /// From when a serving certificate is issued until it expires.
    pub certificate: GoDuration,
    /// From when a CA is made until it expires.
    pub ca: GoDuration,
}

// === impl CertificateProvider ===

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
