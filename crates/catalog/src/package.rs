//! The parts of a catalog that upgrades need.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use version_range::Version;

/// The packages of a catalog, with the upgrade graph of their bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileBasedCatalog {
    /// The packages, by name.
    pub packages: BTreeMap<String, CatalogPackage>,
}

/// A package: an operator in all its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogPackage {
    /// Name of the package.
    pub name: String,
    /// The file that defines the package; empty if there is none.
    #[serde(default)]
    pub place: String,
    /// Name of the default channel.
    #[serde(default)]
    pub default_channel: String,
    /// Description of the operator, as written.
    #[serde(default)]
    pub description: String,
    /// The channels, by name.
    #[serde(default)]
    pub channels: BTreeMap<String, CatalogChannel>,
    /// The bundles, by name.
    #[serde(default)]
    pub bundles: BTreeMap<String, CatalogBundle>,
    /// Deprecated channels and bundles of the package.
    #[serde(default)]
    pub deprecations: Deprecations,
}

/// A channel: the upgrade graph of its bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogChannel {
    /// The file and line of its definition.
    pub place: String,
    /// The entries, by bundle name.
    pub entries: BTreeMap<String, ChannelEntry>,
}

/// A bundle in a channel, with its predecessors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelEntry {
    /// The bundle that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// More predecessors, which upgrades skip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// The version range of more predecessors, in the syntax of `blang/semver`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// A bundle of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogBundle {
    /// The file and line of its definition.
    pub place: String,
    /// Version of the bundle, as written.
    pub version: String,
    /// The image reference.
    pub image: String,
}

/// Deprecated parts of a package, with messages (`olm.deprecations`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deprecations {
    /// The message about the package itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Messages about channels, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, String>,
    /// Messages about bundles, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bundles: BTreeMap<String, String>,
}

impl CatalogPackage {
    /// Lists the bundles of a channel, newest first, omitting entries without a bundle.
    pub fn newest_first(&self, channel: &str) -> Vec<(&str, &CatalogBundle)> {
        let entries = self.channels.get(channel).map(|channel| channel.entries.keys());
        let mut bundles: Vec<_> = entries
            .into_iter()
            .flatten()
            .filter_map(|name| Some((name.as_str(), self.bundles.get(name)?)))
            .filter_map(|(name, bundle)| Some((bundle.parsed_version()?, name, bundle)))
            .collect();
        bundles.sort_by(|(one, one_name, _), (other, other_name, _)| {
            other.cmp_builds(one).then_with(|| one_name.cmp(other_name))
        });
        bundles
            .into_iter()
            .map(|(_, name, bundle)| (name, bundle))
            .collect()
    }
}

impl CatalogBundle {
    /// The version; `None` if it is invalid, which is a problem of the catalog.
    pub fn parsed_version(&self) -> Option<Version> {
        Version::parse(&self.version)
    }
}
