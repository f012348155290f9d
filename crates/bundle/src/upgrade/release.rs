//! Releases of a package, and allowed upgrades between them.

use std::fmt;

use thiserror::Error;

use crate::parse::ClusterServiceVersion;
use version_range::{Version, VersionRange};

/// Identity of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The package in the bundle's annotations.
    pub package: String,
    /// The name of the ClusterServiceVersion.
    pub name: String,
    /// The version, as written.
    pub version: String,
}

/// The bundles that a bundle declares as its predecessors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predecessors {
    /// `spec.replaces`: a name.
    pub replaces: Option<String>,
    /// `spec.skips`: more names.
    pub skips: Vec<String>,
    /// The annotation `olm.skipRange`: a version range.
    pub skip_range: Option<String>,
}

/// Why a bundle may not replace the installed one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum UpgradeRefusal {
    /// The bundle belongs to another package.
    #[error(
        "the package {installed} is installed, but the bundle is of the package {candidate}: delete the BundleDeployment and create another"
    )]
    OtherPackage { installed: String, candidate: String },
    /// The bundle is older, and does not declare the installed one as predecessor.
    #[error(
        "{candidate} is older than the installed {installed}: to allow this, set spec.allowDowngrade; else set spec.source back to {}", installed.name
    )]
    Downgrade { installed: Release, candidate: Release },
    /// The bundle lacks versions in which objects may be stored.
    #[error(
        "objects of {crd} may be stored as {}, which {newer} has and {candidate} lacks: they would be lost. Rewrite them in an older version and remove the newer one from status.storedVersions, or stay with {}", versions.join(", "), newer.name
    )]
    StoredVersions {
        crd: String,
        versions: Vec<String>,
        candidate: Box<Release>,
        /// The bundle that has the versions.
        newer: Box<Release>,
    },
}

impl Release {
    /// Reports whether this version is lower than that of `other`. Invalid versions are not ordered.
    pub fn is_older_than(&self, other: &Self) -> bool {
        match (Version::parse(&self.version), Version::parse(&other.version)) {
            (Some(own), Some(other)) => own < other,
            _ => false,
        }
    }

    /// Checks whether this may replace `installed`: the same or a newer version may; an older one only if
    /// `predecessors` include `installed` or `allow_downgrade` is set.
    ///
    /// # Errors
    ///
    /// An [`UpgradeRefusal`].
    pub fn may_follow(
        &self,
        installed: &Self,
        predecessors: &Predecessors,
        allow_downgrade: bool,
    ) -> Result<(), UpgradeRefusal> {
        if self.package != installed.package {
            return Err(UpgradeRefusal::OtherPackage {
                installed: installed.package.clone(),
                candidate: self.package.clone(),
            });
        }
        if self.is_older_than(installed) && !allow_downgrade && !predecessors.name(installed) {
            return Err(UpgradeRefusal::Downgrade {
                installed: installed.clone(),
                candidate: self.clone(),
            });
        }
        Ok(())
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

impl Predecessors {
    /// Reads the predecessors that a ClusterServiceVersion declares.
    pub fn from_csv(csv: ClusterServiceVersion<'_>) -> Self {
        Self {
            replaces: csv.replaces().map(str::to_owned),
            skips: csv.skips().map(str::to_owned).collect(),
            skip_range: csv.skip_range().map(str::to_owned),
        }
    }

    /// Reports whether the predecessors include `installed`. An invalid range contains nothing.
    fn name(&self, installed: &Release) -> bool {
        let in_range = || {
            let range = VersionRange::parse(self.skip_range.as_deref()?)?;
            Some(range.contains(&Version::parse(&installed.version)?))
        };
        self.replaces.as_deref() == Some(&installed.name)
            || self.skips.contains(&installed.name)
            || in_range().unwrap_or(false)
    }
}

impl UpgradeRefusal {
    /// The reason for a condition, in CamelCase.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::OtherPackage { .. } => "OtherPackage",
            Self::Downgrade { .. } => "Downgrade",
            Self::StoredVersions { .. } => "StoredVersionsLost",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn release(version: &str) -> Release {
        Release {
            package: "p".into(),
            name: format!("p.v{version}"),
            version: version.into(),
        }
    }

    fn predecessors(replaces: &str, skips: &[&str], skip_range: &str) -> Predecessors {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Predecessors {
            replaces: some(replaces),
            skips: skips.iter().map(|name| (*name).to_owned()).collect(),
            skip_range: some(skip_range),
        }
    }

    #[test]
    fn a_downgrade_needs_a_declared_predecessor_or_permission() {
        let none = Predecessors::default();
        for (installed, candidate, predecessors, allowed) in [
            ("1.0.0", "1.0.0", none.clone(), true),
            ("1.0.0", "1.0.1", none.clone(), true),
            ("1.0.0", "2.0.0-rc.1", none.clone(), true),
            ("1.0.0+a", "1.0.0+b", none.clone(), true),
            ("1.9.0", "1.10.0", none.clone(), true),
            ("1.0.1", "1.0.0", none.clone(), false),
            ("2.0.0", "2.0.0-rc.1", none.clone(), false),
            ("2.0.0", "1.0.0", predecessors("p.v2.0.0", &[], ""), true),
            ("2.0.0", "1.0.0", predecessors("p.v0.9.0", &[], ""), false),
            (
                "2.0.0",
                "1.0.0",
                predecessors("", &["p.v1.9.0", "p.v2.0.0"], ""),
                true,
            ),
            ("2.0.0", "1.0.0", predecessors("", &[], ">=2.0.0 <2.1.0"), true),
            ("2.1.0", "1.0.0", predecessors("", &[], ">=2.0.0 <2.1.0"), false),
            ("2.1.0", "1.0.0", predecessors("", &[], "nonsense"), false),
        ] {
            let (installed, candidate) = (release(installed), release(candidate));
            let found = candidate.may_follow(&installed, &predecessors, false);
            assert_eq!(
                found.is_ok(),
                allowed,
                "{installed:?} {candidate:?} {predecessors:?}"
            );
            assert_eq!(candidate.may_follow(&installed, &predecessors, true), Ok(()));
            if let Err(refusal) = found {
                let message = refusal.to_string();
                assert!(
                    message.contains(&installed.version) && message.contains(&candidate.version),
                    "{message}"
                );
                assert_eq!(refusal.reason(), "Downgrade");
            }
        }
    }

    #[test]
    fn another_package_is_never_an_upgrade() {
        let other = Release {
            package: "q".into(),
            ..release("2.0.0")
        };
        let refusal = other
            .may_follow(&release("1.0.0"), &predecessors("p.v1.0.0", &[], ""), true)
            .unwrap_err();
        assert_eq!(refusal.reason(), "OtherPackage");
    }

    proptest! {
        #[test]
        fn at_least_one_of_two_releases_may_replace_the_other(one in "[0-2]\\.[0-2]\\.[0-2]", other in "[0-2]\\.[0-2]\\.[0-2]") {
            let (one, other) = (release(&one), release(&other));
            let none = Predecessors::default();
            let ways = [one.may_follow(&other, &none, false), other.may_follow(&one, &none, false)];
            prop_assert!(ways.iter().any(Result::is_ok));
            prop_assert_eq!(ways.iter().all(Result::is_ok), one.version == other.version);
        }
    }
}
