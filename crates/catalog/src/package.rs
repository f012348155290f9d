//! What is kept of a catalog.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use version_range::Version;

/// What is kept of a catalog: what its packages are, and which bundle may follow which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileBasedCatalog {
    /// By their names.
    pub packages: BTreeMap<String, CatalogPackage>,
}

/// A package: an operator in all its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogPackage {
    /// What it is called.
    pub name: String,
    /// The file that says so; empty where none does.
    #[serde(default)]
    pub place: String,
    /// The channel that is meant where none is named.
    #[serde(default)]
    pub default_channel: String,
    /// What it is for, in words.
    #[serde(default)]
    pub description: String,
    /// By their names.
    #[serde(default)]
    pub channels: BTreeMap<String, CatalogChannel>,
    /// By their names.
    #[serde(default)]
    pub bundles: BTreeMap<String, CatalogBundle>,
    /// What of it should no longer be used.
    #[serde(default)]
    pub deprecations: Deprecations,
}

/// A channel: bundles, and how one follows the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogChannel {
    /// The file that it is in, and the line.
    pub place: String,
    /// By the names of their bundles.
    pub entries: BTreeMap<String, ChannelEntry>,
}

/// A bundle in a channel, with those that it may follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelEntry {
    /// The bundle that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Bundles that it may follow as well, and that are passed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// A range of versions that it may follow, as `blang/semver` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// A bundle of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogBundle {
    /// The file that it is in, and the line.
    pub place: String,
    /// Its version.
    pub version: String,
    /// Where it is pulled from.
    pub image: String,
}

/// What should no longer be used, and what is said about it (`olm.deprecations`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deprecations {
    /// The package itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Channels by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, String>,
    /// Bundles by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bundles: BTreeMap<String, String>,
}

// === impl CatalogPackage ===

impl CatalogPackage {
    /// The bundles of a channel, the newest first; those that the catalog lacks are left out.
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

// === impl CatalogBundle ===

impl CatalogBundle {
    /// The version; `None` where it cannot be read, which is a problem of the catalog.
    pub fn parsed_version(&self) -> Option<Version> {
        Version::parse(&self.version)
    }
}
