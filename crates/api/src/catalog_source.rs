//! A channel of a catalog as the source of bundles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A channel of a package in a file-based catalog (FBC) that is an OCI image.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogSource {
    /// Image reference of the catalog. The operator periodically resolves a tag again; a digest never
    /// changes.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 1024))]
    pub reference: String,
    /// Name of a Secret of type `kubernetes.io/dockerconfigjson` in the operator's own namespace, for the catalog and for the
    /// images of its bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pull_secret: Option<String>,
    /// Name of the package. It must be that of the installed bundle.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub package: String,
    /// Channel to follow. Defaults to the default channel of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub channel: Option<String>,
    /// Range of versions to install, in the syntax of OLM v1: `>=1.2 <2`, `1.2.x`, `~1.2`. If not set, all
    /// versions match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// Whether each bundle, including the first one, waits for an approval before it is installed.
    #[serde(default)]
    pub approval: UpgradeApproval,
}

/// Whether bundles of a catalog wait for an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum UpgradeApproval {
    /// The next bundle is installed as soon as the previous one is ready.
    #[default]
    Automatic,
    /// The next bundle is installed when the annotation `windlass.dev/approve` names it, which `windlass catalog approve` sets.
    Manual,
}

/// State of the catalog for a BundleDeployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogStatus {
    /// Digest of the catalog image that was read last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The followed channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Upgrade path from the installed bundle to the newest one in the range, the next bundle first. A long
    /// path is truncated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<CatalogStep>,
    /// Number of further bundles of the path that `path` omits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Whether the next bundle waits for an approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting_for_approval: bool,
    /// The last value of the annotation `windlass.dev/approve` whose bundle is installed. This approval is
    /// used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
}

/// One bundle of an upgrade path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogStep {
    /// Name of the ClusterServiceVersion.
    pub name: String,
    /// Version of the bundle.
    pub version: String,
    /// Digest of the bundle image, if the catalog refers to it by digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Why the bundle may follow the previous one.
    pub because: String,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
