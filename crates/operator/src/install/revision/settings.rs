//! The part of a spec that decides what is rendered.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::{BundleDeploymentSpec, CertificateDefaults};

/// The part of a spec that decides what is rendered: the same bundle with the same settings is the same revision.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallSettings {
    /// `spec.namespace`.
    pub namespace: String,
    /// `spec.watchNamespaces`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch_namespaces: Vec<String>,
    /// `spec.config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// `spec.certificates`.
    #[serde(default)]
    pub certificates: CertificateDefaults,
}

// === impl InstallSettings ===

impl InstallSettings {
    /// Those of a spec.
    pub fn of(spec: &BundleDeploymentSpec) -> Self {
        Self {
            namespace: spec.namespace.clone(),
            watch_namespaces: spec.watch_namespaces.clone(),
            config: spec.config.clone(),
            certificates: spec.certificates.clone(),
        }
    }
}
