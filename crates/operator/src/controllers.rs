//! Which controllers a process runs: some of three groups, each with the rights of its own.

use std::{fmt, str::FromStr};

use thiserror::Error;
use windlass_cluster::lease::LEASE;

/// Which controllers a process runs, at least those of one group. Processes of one cluster may run some groups each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    certificates: bool,
    bundles: bool,
    policies: bool,
}

/// A list of controllers names something else.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} must be {CERTIFICATES}, {BUNDLES} or {POLICIES}, or several with commas between")]
pub struct UnknownController(String);

const CERTIFICATES: &str = "certificates";
const BUNDLES: &str = "bundles";
const POLICIES: &str = "policies";

// === impl Controllers ===

impl Controllers {
    const NONE: Self = Self {
        certificates: false,
        bundles: false,
        policies: false,
    };

    /// Those that issue certificates, rotate CAs and inject trust bundles.
    pub const CERTIFICATES: Self = Self {
        certificates: true,
        ..Self::NONE
    };

    /// That of BundleDeployments, and the guard.
    pub const BUNDLES: Self = Self {
        bundles: true,
        ..Self::NONE
    };

    /// Those of policies, and the server that answers from them.
    pub const POLICIES: Self = Self {
        policies: true,
        ..Self::NONE
    };

    /// Those that run where nobody says which: certificates and bundles.
    pub const DEFAULT: Self = Self {
        policies: false,
        ..Self::ALL
    };

    /// Those of every group.
    pub const ALL: Self = Self {
        certificates: true,
        bundles: true,
        policies: true,
    };

    /// Whether those of certificates are among them.
    pub const fn have_certificates(self) -> bool {
        self.certificates
    }

    /// Whether those of bundles are among them.
    pub const fn have_bundles(self) -> bool {
        self.bundles
    }

    /// Whether those of policies are among them.
    pub const fn have_policies(self) -> bool {
        self.policies
    }

    /// Whether any of them answers AdmissionReviews.
    pub const fn answer_reviews(self) -> bool {
        self.bundles || self.policies
    }

    /// These, and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self {
            certificates: self.certificates || other.certificates,
            bundles: self.bundles || other.bundles,
            policies: self.policies || other.policies,
        }
    }

    /// The name of the Lease by which one of the processes with these controllers is chosen to lead. Those of bundles never
    /// run twice; others do where one process runs several groups and another runs one of them alone, which does no harm and
    /// costs requests.
    pub const fn lease(self) -> &'static str {
        match self {
            Self { bundles: true, .. } => LEASE,
            Self {
                certificates: true, ..
            } => "windlass-certificates",
            _ => "windlass-policies",
        }
    }

    /// The names of those that are among them.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let each = [
            (CERTIFICATES, self.certificates),
            (BUNDLES, self.bundles),
            (POLICIES, self.policies),
        ];
        each.into_iter()
            .filter_map(|(name, is_among)| is_among.then_some(name))
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
    fn each_choice_is_read_as_it_is_printed_and_groups_elect_apart() {
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
                if controllers.have_bundles() {
                    assert_eq!(controllers.lease(), Controllers::BUNDLES.lease());
                }
            }
        }
        assert_eq!(Controllers::DEFAULT.to_string(), "certificates,bundles");
    }

    #[test]
    fn a_list_has_any_order_and_nothing_else() {
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
