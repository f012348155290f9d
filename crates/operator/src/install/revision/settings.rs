//! The part of a spec that decides what is rendered.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::{BundleDeploymentSpec, CertificateDefaults, ConversionManager};
use windlass_bundle::{
    check::Tolerance,
    render::{CertificateProvider, ConversionMode, DeploymentConfig, Durations, InstallOptions},
};
use windlass_object::Problem;

use crate::install::overrides::ObjectOverride;

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
    /// `spec.conversion`.
    #[serde(default)]
    pub conversion: ConversionManager,
    /// `spec.allowBlockingWebhooks`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_blocking_webhooks: bool,
    /// What override policies change; not of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<ObjectOverride>,
}

impl InstallSettings {
    /// Those of a spec.
    pub fn of(spec: &BundleDeploymentSpec) -> Self {
        Self {
            namespace: spec.namespace.clone(),
            watch_namespaces: spec.watch_namespaces.clone(),
            config: spec.config.clone(),
            certificates: spec.certificates.clone(),
            conversion: spec.conversion,
            allow_blocking_webhooks: spec.allow_blocking_webhooks,
            overrides: Vec::new(),
        }
    }

    /// The same with other overrides.
    #[must_use]
    pub fn overridden(&self, overrides: Vec<ObjectOverride>) -> Self {
        Self {
            overrides,
            ..self.clone()
        }
    }

    /// Whether they are of a spec with these settings, whatever policies override.
    pub fn are_of(&self, spec: &Self) -> bool {
        self.overridden(Vec::new()) == spec.overridden(Vec::new())
    }

    /// Who arms the conversions.
    fn conversion_mode(&self) -> ConversionMode {
        match self.conversion {
            ConversionManager::Managed => ConversionMode::Managed,
            ConversionManager::External => ConversionMode::External,
        }
    }

    /// What the check of the bundle lets pass.
    pub fn tolerance(&self) -> Tolerance {
        Tolerance {
            undeclared_conversions: self.conversion_mode() == ConversionMode::External,
            blocking_webhooks: self.allow_blocking_webhooks,
        }
    }

    /// How the bundle is rendered.
    ///
    /// # Errors
    ///
    /// Every problem of `spec.config`.
    pub fn options(&self) -> Result<InstallOptions, Vec<Problem>> {
        let config = match &self.config {
            Some(config) => DeploymentConfig::from_value("spec.config", config)?,
            None => DeploymentConfig::default(),
        };
        Ok(InstallOptions {
            namespace: self.namespace.clone(),
            watch_namespaces: self.watch_namespaces.clone(),
            config,
            certificates: CertificateProvider::Windlass {
                durations: Some(Durations {
                    certificate: self.certificates.duration,
                    ca: self.certificates.ca_duration,
                }),
            },
            conversion: self.conversion_mode(),
            blocking_webhooks: self.allow_blocking_webhooks,
        })
    }
}
