//! Revisions in the status of a BundleDeployment.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Identity of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleStatus {
    /// Name of the package.
    pub package: String,
    /// Name of the ClusterServiceVersion.
    pub name: String,
    /// Version of the bundle.
    pub version: String,
    /// Digest of all files, `sha256:…`.
    pub digest: String,
}

/// One revision: a recorded installation of a bundle with its settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleRevision {
    /// Number of the revision; each new one gets the next number.
    pub revision: i64,
    /// The bundle.
    #[serde(flatten)]
    pub bundle: BundleStatus,
    /// Image of the bundle, by digest, if it comes from an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// The installed revision.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstalledRevision {
    /// Number of the revision.
    pub revision: i64,
    /// The bundle.
    #[serde(flatten)]
    pub bundle: BundleStatus,
    /// Image of the bundle, by digest, if it comes from an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Whether its Deployments are available and all its webhooks are armed, regardless of the next revision.
    #[serde(default)]
    pub healthy: bool,
}

/// The revision to install next.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextRevision {
    /// Number of the revision, once it is accepted and recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Name of the package, once the bundle is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Name of the ClusterServiceVersion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Version of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest of all files, `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Image of the bundle, by digest, if it comes from an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Why it is not installed yet, as a reason in CamelCase.
    #[serde(default)]
    pub reason: String,
    /// What Windlass waits for, or what is wrong and how to fix it.
    #[serde(default)]
    pub message: String,
}

impl fmt::Display for InstalledRevision {
    /// For example `demo.v1.0.0 (revision 1, healthy)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let health = if self.healthy { "healthy" } else { "not healthy" };
        write!(f, "{} (revision {}, {health})", self.bundle.name, self.revision)
    }
}

impl NextRevision {
    /// Returns the revision of `bundle`, without reason and message. `revision` is its number once it is
    /// recorded.
    pub fn from_bundle(bundle: &BundleStatus, image: Option<String>, revision: Option<i64>) -> Self {
        Self {
            revision,
            image,
            package: Some(bundle.package.clone()),
            name: Some(bundle.name.clone()),
            version: Some(bundle.version.clone()),
            digest: Some(bundle.digest.clone()),
            ..Self::default()
        }
    }
}
