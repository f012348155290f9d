//! What the status of a BundleDeployment says of its revisions.

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
    /// Digest over all files, `sha256:…`.
    pub digest: String,
}

/// One revision: a recorded installation of a bundle with its settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleRevision {
    /// Number of the revision; each new one gets the next number.
    pub revision: i64,
    /// Its bundle.
    #[serde(flatten)]
    pub bundle: BundleStatus,
    /// Image that it was pulled from, by its digest, if it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// The installed revision.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstalledRevision {
    /// Number of the revision.
    pub revision: i64,
    /// Its bundle.
    #[serde(flatten)]
    pub bundle: BundleStatus,
    /// Image that it was pulled from, by its digest, if it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Whether its Deployments are available and all its webhooks are armed, whatever the next revision waits for.
    #[serde(default)]
    pub healthy: bool,
}

/// The revision that is to be installed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextRevision {
    /// Number of the revision, once it is accepted and recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Name of the package, once the bundle was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Name of the ClusterServiceVersion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Version of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest over all files, `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Image that it was pulled from, by its digest, if it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Why it is not installed yet, in one word.
    #[serde(default)]
    pub reason: String,
    /// What is waited for, or what is wrong and what to do about it.
    #[serde(default)]
    pub message: String,
}

// === impl InstalledRevision ===

impl fmt::Display for InstalledRevision {
    /// What is installed, and whether it works, whatever comes next.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let health = if self.healthy { "healthy" } else { "not healthy" };
        write!(f, "{} (revision {}, {health})", self.bundle.name, self.revision)
    }
}

// === impl NextRevision ===

impl NextRevision {
    /// That of a bundle, and of the image that it came from; `revision` once it has a number.
    pub fn of(bundle: &BundleStatus, image: Option<String>, revision: Option<i64>) -> Self {
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
