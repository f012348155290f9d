//! Bundles that a catalog names, one after the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A channel of a package in a file-based catalog (FBC) that is an OCI image.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogSource {
    /// Image reference of the catalog. With a tag, the operator looks from time to time where it leads; with a digest, the catalog
    /// stays as it is.
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
    /// Channel to follow. If not set, it is the default channel of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub channel: Option<String>,
    /// Versions that are wanted, as OLM v1 writes them: `>=1.2 <2`, `1.2.x`, `~1.2`. If not set, all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// Whether each bundle waits for an approval before it is installed, also the first one.
    #[serde(default)]
    pub approval: UpgradeApproval,
}

/// Whether bundles of a catalog wait for an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum UpgradeApproval {
    /// The next bundle is installed as soon as the one before is ready.
    #[default]
    Automatic,
    /// The next bundle is installed when the annotation `windlass.dev/approve` names it, which `windlass catalog approve` sets.
    Manual,
}

/// What a catalog has for a BundleDeployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogStatus {
    /// Digest of the image of the catalog that was read last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Channel that is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Bundles on the way from the installed one to the newest that is wanted, the next one first. Of a long way, only the
    /// beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<CatalogStep>,
    /// Number of bundles on the way that are not in `path`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Whether the next bundle waits for an approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting_for_approval: bool,
    /// The last value of the annotation `windlass.dev/approve` whose bundle is installed. It approves nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
}

/// One bundle on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogStep {
    /// Name of the ClusterServiceVersion.
    pub name: String,
    /// Version of the bundle.
    pub version: String,
    /// Digest of its image, if the catalog names that by digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Why it may follow the bundle before.
    pub because: String,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
