//! Selection of the controllers that a process runs: one or more of three groups, each with its own rights.

use std::{fmt, str::FromStr};

use thiserror::Error;
use windlass_cluster::lease::LEASE;

/// The controllers that a process runs: at least one group. Several processes of a cluster can share the
/// groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    certificates: bool,
    bundles: bool,
    policies: bool,
}

/// The list of controllers contains an unknown name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} must be {CERTIFICATES}, {BUNDLES} or {POLICIES}, or a comma-separated list of them")]
pub struct UnknownController(String);

const CERTIFICATES: &str = "certificates";
const BUNDLES: &str = "bundles";
const POLICIES: &str = "policies";

impl Controllers {
    const NONE: Self = Self {
        certificates: false,
        bundles: false,
        policies: false,
    };

    /// Controllers that issue certificates, rotate CAs and inject trust bundles.
    pub const CERTIFICATES: Self = Self {
        certificates: true,
        ..Self::NONE
    };

    /// Controller of BundleDeployments, and the guard.
    pub const BUNDLES: Self = Self {
        bundles: true,
        ..Self::NONE
    };

    /// Controller of policies, and their admission server.
    pub const POLICIES: Self = Self {
        policies: true,
        ..Self::NONE
    };

    /// The default: certificates and bundles.
    pub const DEFAULT: Self = Self {
        policies: false,
        ..Self::ALL
    };

    /// All groups.
    pub const ALL: Self = Self {
        certificates: true,
        bundles: true,
        policies: true,
    };

    /// Reports whether the group for certificates is selected.
    pub const fn has_certificates(self) -> bool {
        self.certificates
    }

    /// Reports whether the group for bundles is selected.
    pub const fn has_bundles(self) -> bool {
        self.bundles
    }

    /// Reports whether the group for policies is selected.
    pub const fn has_policies(self) -> bool {
        self.policies
    }

    /// Reports whether a selected group answers AdmissionReviews.
    pub const fn can_answer_reviews(self) -> bool {
        self.bundles || self.policies
    }

    /// Adds the groups of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self {
            certificates: self.certificates || other.certificates,
            bundles: self.bundles || other.bundles,
            policies: self.policies || other.policies,
        }
    }

    /// Returns the name of the Lease for leader election. Bundle controllers always share one Lease, so they
    /// never run twice. Other groups may run twice if one process runs several groups and another one runs a
    /// single group. That is harmless, but causes more requests.
    pub const fn lease(self) -> &'static str {
        match self {
            Self { bundles: true, .. } => LEASE,
            Self {
                certificates: true, ..
            } => "windlass-certificates",
            _ => "windlass-policies",
        }
    }

    /// Returns the names of the selected groups.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let each = [
            (CERTIFICATES, self.certificates),
            (BUNDLES, self.bundles),
            (POLICIES, self.policies),
        ];
        each.into_iter()
            .filter_map(|(name, is_selected)| is_selected.then_some(name))
    }
}

impl Default for Controllers {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl FromStr for Controllers {
    type Err = UnknownController;

    fn from_str(text: &str) -> Result<Self, UnknownController> {
        let mut chosen = Self::NONE;
        for name in text.split(',').map(str::trim) {
            chosen = chosen.with(match name {
                CERTIFICATES => Self::CERTIFICATES,
                BUNDLES => Self::BUNDLES,
                POLICIES => Self::POLICIES,
                other => return Err(UnknownController(other.to_owned())),
            });
        }
        Ok(chosen)
    }
}

impl fmt::Display for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_parse_as_printed_and_each_group_has_its_own_lease() {
        let groups = [
            Controllers::CERTIFICATES,
            Controllers::BUNDLES,
            Controllers::POLICIES,
        ];
        for one in groups {
            for other in groups {
                let controllers = one.with(other);
                assert_eq!(controllers.to_string().parse(), Ok(controllers));
                assert_eq!(one.lease() == other.lease(), one == other);
                if controllers.has_bundles() {
                    assert_eq!(controllers.lease(), Controllers::BUNDLES.lease());
                }
            }
        }
        assert_eq!(Controllers::DEFAULT.to_string(), "certificates,bundles");
    }

    #[test]
    fn a_list_accepts_any_order_and_rejects_unknown_names() {
        for (text, expected) in [
            ("bundles, certificates", Ok(Controllers::DEFAULT)),
            ("bundles,bundles", Ok(Controllers::BUNDLES)),
            ("bundles,certificates,bundles", Ok(Controllers::DEFAULT)),
            ("policies,certificates,bundles", Ok(Controllers::ALL)),
            ("policies", Ok(Controllers::POLICIES)),
            ("", Err(UnknownController(String::new()))),
            ("all", Err(UnknownController("all".to_owned()))),
            ("bundles,", Err(UnknownController(String::new()))),
        ] {
            assert_eq!(text.parse(), expected, "{text:?}");
        }
    }
}
