//! A single requirement of a bundle, and its constraints.

use std::fmt;

use version_range::{Version, VersionRange};

use super::cel_rule::CelRule;

/// A kind in one version of its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequiredApi {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, without the group.
    pub version: String,
    /// The kind, for example `Widget`.
    pub kind: String,
}

/// Another package, in a range of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredPackage {
    /// Name of the package.
    pub name: String,
    /// The version range, as written.
    pub range: String,
}

/// One requirement of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    /// The place in the bundle, for messages: `spec.nativeAPIs`.
    pub source: String,
    /// The author's message for an unmet requirement.
    pub failure_message: Option<String>,
    /// The condition.
    pub requirement: Requirement,
}

/// A condition on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// A kind is served.
    Api(RequiredApi),
    /// A package is installed.
    Package(RequiredPackage),
    /// A CEL expression is true for the properties of all installed packages.
    Rule(CelRule),
    /// All of these constraints are met.
    All(Vec<Dependency>),
    /// At least one of these constraints is met.
    Any(Vec<Dependency>),
    /// None of these constraints is met.
    Not(Vec<Dependency>),
}

impl RequiredApi {
    /// `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for RequiredApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind, self.api_version())
    }
}

impl RequiredPackage {
    /// Reports whether a package of this name and version meets the requirement.
    pub fn is_met_by(&self, name: &str, version: &str) -> bool {
        let range = VersionRange::parse(&self.range);
        let version = Version::parse(version);
        self.name == name
            && range
                .zip(version)
                .is_some_and(|(range, version)| range.contains(&version))
    }
}

impl fmt::Display for RequiredPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.range)
    }
}

impl Requirement {
    /// Calls `found` with every required kind.
    pub fn each_api<'a>(&'a self, found: &mut dyn FnMut(&'a RequiredApi)) {
        match self {
            Self::Api(api) => found(api),
            Self::Package(_) | Self::Rule(_) => {}
            Self::All(parts) | Self::Any(parts) | Self::Not(parts) => {
                for part in parts {
                    part.requirement.each_api(found);
                }
            }
        }
    }
}
