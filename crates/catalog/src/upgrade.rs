//! The upgrade path from the installed bundle to a requested version.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque},
    fmt, iter,
};

use serde::Serialize;
use version_range::{Version, VersionConstraint, VersionRange};

use crate::{
    package::{CatalogBundle, CatalogPackage, ChannelEntry},
    text::join_names,
};

/// A requested version of a package.
#[derive(Clone, Debug, Default)]
pub struct UpgradeRequest<'a> {
    /// The channel; by default the default channel.
    pub channel: Option<&'a str>,
    /// The accepted versions; by default all.
    pub version: Option<&'a VersionConstraint>,
    /// The installed bundle.
    pub installed: Option<InstalledRelease<'a>>,
}

/// An installed bundle, which the catalog need not contain.
#[derive(Clone, Debug)]
pub struct InstalledRelease<'a> {
    /// The name of the bundle's ClusterServiceVersion.
    pub name: &'a str,
    /// Version of the bundle.
    pub version: Version,
}

/// The shortest path to the newest reachable bundle that is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradePath {
    /// Name of the package.
    pub package: String,
    /// Name of the channel.
    pub channel: String,
    /// The installed bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The bundles of the path in order; empty if the requested bundle is installed.
    pub edges: Vec<UpgradeEdge>,
}

/// A step of an upgrade path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeEdge {
    /// The next bundle.
    pub bundle: String,
    /// Version of the bundle.
    pub version: String,
    /// The image reference.
    pub image: String,
    /// The reason why it may follow.
    pub reason: EdgeReason,
    /// The deprecation message, if it is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
}

/// The reason why a bundle may follow another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum EdgeReason {
    /// Nothing is installed.
    Install,
    /// The bundle replaces the previous one.
    Replaces,
    /// The bundle skips the previous one.
    Skips,
    /// The version of the previous bundle is in the bundle's `skipRange`.
    SkipRange(String),
}

/// Why no bundle can be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ResolutionError {
    /// The channel does not exist.
    #[error("package {package} has no channel {channel}: it has {}", join_names(.channels.iter().map(String::as_str)))]
    Channel {
        package: String,
        /// The requested channel.
        channel: String,
        /// The existing channels.
        channels: Vec<String>,
    },
    /// The channel has no accepted version.
    #[error(
        "channel {channel} of package {package} has no version {constraint}: it has {}",
        join_names(.versions.iter().map(String::as_str))
    )]
    Version {
        package: String,
        channel: String,
        /// The version constraint.
        constraint: String,
        /// The versions in the channel, newest first.
        versions: Vec<String>,
    },
    /// No path leads from the installed bundle to an accepted version.
    #[error("{}", unreachable(.package, .channel, .from, .reachable, .wanted))]
    Unreachable {
        package: String,
        channel: String,
        /// The installed bundle.
        from: String,
        /// The reachable bundles, newest first.
        reachable: Vec<String>,
        /// The accepted bundles, newest first, each with its predecessors.
        wanted: Vec<(String, String)>,
    },
}

/// An installable bundle of the channel.
struct Candidate<'a> {
    name: &'a str,
    bundle: &'a CatalogBundle,
    version: Version,
    entry: &'a ChannelEntry,
    skip_range: Option<VersionRange>,
    deprecated: Option<&'a String>,
}

impl CatalogPackage {
    /// Finds the path to the newest reachable bundle that is accepted. Bundles that are not deprecated take
    /// precedence, as in OLM v1.
    ///
    /// # Errors
    ///
    /// If there is none, with the versions of the channel or the reason why they are unreachable.
    pub fn resolve(&self, request: &UpgradeRequest<'_>) -> Result<UpgradePath, ResolutionError> {
        let channel = request.channel.unwrap_or(&self.default_channel);
        let candidates = self.candidates(channel)?;
        let is_wanted = |version: &Version| request.version.is_none_or(|wanted| wanted.contains(version));
        let path = |edges| UpgradePath {
            package: self.name.clone(),
            channel: channel.to_owned(),
            from: request
                .installed
                .as_ref()
                .map(|installed| installed.name.to_owned()),
            edges,
        };
        let wanted: Vec<_> = candidates
            .iter()
            .filter(|candidate| is_wanted(&candidate.version))
            .collect();
        let Some(installed) = &request.installed else {
            let newest = wanted
                .first()
                .ok_or_else(|| self.no_version(channel, request, &candidates))?;
            return Ok(path(vec![newest.edge(EdgeReason::Install)]));
        };
        let reached = reachable_bundles(&candidates, installed);
        let is_installed = |candidate: &&Candidate<'_>| candidate.name == installed.name;
        let goal = candidates
            .iter()
            .filter(|candidate| is_wanted(&candidate.version))
            .find(|candidate| is_installed(candidate) || reached.contains_key(candidate.name));
        match goal {
            Some(goal) if !is_installed(&goal) => {
                let mut edges = Vec::new();
                let mut at = Some(goal.name);
                while let Some((before, reason)) = at.and_then(|name| reached.get(name)) {
                    edges.extend(
                        candidates
                            .iter()
                            .find(|candidate| Some(candidate.name) == at)
                            .map(|c| c.edge(reason.clone())),
                    );
                    at = *before;
                }
                edges.reverse();
                Ok(path(edges))
            }
            Some(_) => Ok(path(Vec::new())),
            // The channel may no longer contain the installed bundle.
            None if is_wanted(&installed.version)
                && wanted.iter().all(|other| other.version <= installed.version) =>
            {
                Ok(path(Vec::new()))
            }
            None if wanted.is_empty() => Err(self.no_version(channel, request, &candidates)),
            None => Err(ResolutionError::Unreachable {
                package: self.name.clone(),
                channel: channel.to_owned(),
                from: installed.name.to_owned(),
                reachable: candidates
                    .iter()
                    .filter(|candidate| reached.contains_key(candidate.name))
                    .map(|candidate| candidate.name.to_owned())
                    .collect(),
                wanted: wanted
                    .iter()
                    .map(|candidate| (candidate.name.to_owned(), candidate.entry.to_string()))
                    .collect(),
            }),
        }
    }

    /// Lists the bundles of a channel, preferred first.
    fn candidates(&self, channel: &str) -> Result<Vec<Candidate<'_>>, ResolutionError> {
        let entries = &self
            .channels
            .get(channel)
            .ok_or_else(|| ResolutionError::Channel {
                package: self.name.clone(),
                channel: channel.to_owned(),
                channels: self.channels.keys().cloned().collect(),
            })?;
        let mut candidates: Vec<_> = self
            .newest_first(channel)
            .into_iter()
            .filter_map(|(name, bundle)| {
                let entry = entries.entries.get(name)?;
                Some(Candidate {
                    name,
                    bundle,
                    version: bundle.parsed_version()?,
                    entry,
                    skip_range: entry.skip_range.as_deref().and_then(VersionRange::parse),
                    deprecated: self.deprecations.bundles.get(name),
                })
            })
            .collect();
        candidates.sort_by_key(|candidate| candidate.deprecated.is_some());
        Ok(candidates)
    }

    fn no_version(
        &self,
        channel: &str,
        request: &UpgradeRequest<'_>,
        candidates: &[Candidate<'_>],
    ) -> ResolutionError {
        ResolutionError::Version {
            package: self.name.clone(),
            channel: channel.to_owned(),
            constraint: request.version.map_or("*", VersionConstraint::as_str).to_owned(),
            versions: candidates
                .iter()
                .map(|candidate| candidate.bundle.version.clone())
                .collect(),
        }
    }
}

impl UpgradePath {
    /// The bundles in order, each with a text why it may follow the previous one.
    pub fn explanations(&self) -> impl Iterator<Item = (&UpgradeEdge, String)> {
        let installed = self.from.as_deref().unwrap_or_default();
        let before = iter::once(installed).chain(self.edges.iter().map(|edge| &*edge.bundle));
        self.edges
            .iter()
            .zip(before)
            .map(|(edge, before)| (edge, edge.reason.explanation(before)))
    }
}

impl EdgeReason {
    /// Explains the reason; `before` is the previous bundle.
    fn explanation(&self, before: &str) -> String {
        match self {
            Self::Install => "nothing is installed".to_owned(),
            Self::Replaces => format!("replaces {before}"),
            Self::Skips => format!("skips {before}"),
            Self::SkipRange(range) => format!("follows versions {range}"),
        }
    }
}

impl Candidate<'_> {
    fn edge(&self, reason: EdgeReason) -> UpgradeEdge {
        UpgradeEdge {
            bundle: self.name.to_owned(),
            version: self.bundle.version.clone(),
            image: self.bundle.image.clone(),
            reason,
            deprecated: self.deprecated.cloned(),
        }
    }

    /// Returns the reason why the candidate may follow a bundle; `None` if it may not.
    fn may_follow(&self, name: &str, version: &Version) -> Option<EdgeReason> {
        if self.name == name {
            None
        } else if self.entry.replaces.as_deref() == Some(name) {
            Some(EdgeReason::Replaces)
        } else if self.entry.skips.iter().any(|skipped| skipped == name) {
            Some(EdgeReason::Skips)
        } else if self
            .skip_range
            .as_ref()
            .is_some_and(|range| range.contains(version))
        {
            Some(EdgeReason::SkipRange(
                self.entry.skip_range.clone().unwrap_or_default(),
            ))
        } else {
            None
        }
    }
}

/// Returns the reachable bundles, each with the previous bundle (`None`: the installed one) on the shortest
/// path, and the reason why it may follow.
fn reachable_bundles<'a>(
    candidates: &[Candidate<'a>],
    installed: &InstalledRelease<'_>,
) -> BTreeMap<&'a str, (Option<&'a str>, EdgeReason)> {
    let mut reached: BTreeMap<&str, (Option<&str>, EdgeReason)> = BTreeMap::new();
    let mut unreached: Vec<&Candidate<'a>> = candidates
        .iter()
        .filter(|candidate| candidate.name != installed.name)
        .collect();
    let mut next: VecDeque<Option<&Candidate<'a>>> = VecDeque::from([None]);
    while let Some(at) = next.pop_front() {
        let (name, version) = at.map_or((installed.name, &installed.version), |at| (at.name, &at.version));
        unreached.retain(|candidate| {
            // A step to the same or an older version is not an upgrade.
            let is_newer = candidate.version.cmp_builds(version) == Ordering::Greater;
            let reason = candidate.may_follow(name, version).filter(|_| is_newer);
            let is_reached = reason.is_some();
            if let Some(reason) = reason {
                reached.insert(candidate.name, (at.map(|at| at.name), reason));
                next.push_back(Some(candidate));
            }
            !is_reached
        });
    }
    reached
}

impl fmt::Display for ChannelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replaces = self.replaces.as_ref().map(|name| format!("replaces {name}"));
        let skips = (!self.skips.is_empty())
            .then(|| format!("skips {}", join_names(self.skips.iter().map(String::as_str))));
        let range = self
            .skip_range
            .as_ref()
            .map(|range| format!("follows versions {range}"));
        let said: Vec<_> = replaces.into_iter().chain(skips).chain(range).collect();
        if said.is_empty() {
            f.write_str("follows nothing")
        } else {
            f.write_str(&said.join(", "))
        }
    }
}

fn unreachable(
    package: &str,
    channel: &str,
    from: &str,
    reachable: &[String],
    wanted: &[(String, String)],
) -> String {
    /// The maximum number of explained bundles.
    const FEW: usize = 3;
    let reachable = match reachable {
        [] => "nothing can be reached".to_owned(),
        some => format!(
            "only {} can be reached",
            join_names(some.iter().map(String::as_str))
        ),
    };
    let wanted: Vec<_> = wanted
        .iter()
        .take(FEW)
        .map(|(name, follows)| format!("{name} {follows}"))
        .collect();
    format!(
        "no path leads from {from} to a wanted version in channel {channel} of package {package}: {reachable}; {}",
        wanted.join("; ")
    )
}
