//! Which controllers a process runs: all, or those of one half, with the rights of that half.

use std::{fmt, str::FromStr};

use thiserror::Error;
use windlass_cluster::lease::LEASE;

/// Which controllers a process runs. Two processes may run one half each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// Those of both halves.
    All,
    /// Those that issue certificates, rotate CAs and inject trust bundles.
    Certificates,
    /// That of BundleDeployments, and the guard.
    Bundles,
}

/// A list of controllers names something else.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} must be {CERTIFICATES} or {BUNDLES}, or both with a comma between")]
pub struct UnknownController(String);

const CERTIFICATES: &str = "certificates";
const BUNDLES: &str = "bundles";

// === impl Controllers ===

impl Controllers {
    /// Each choice, in the order in which they are documented.
    pub const EACH: [Self; 3] = [Self::All, Self::Certificates, Self::Bundles];

    /// Whether those of certificates are among them.
    pub const fn have_certificates(self) -> bool {
        !matches!(self, Self::Bundles)
    }

    /// Whether those of bundles are among them.
    pub const fn have_bundles(self) -> bool {
        !matches!(self, Self::Certificates)
    }

    /// The name of the Lease by which one of the processes with these controllers is chosen to lead. Those of bundles never
    /// run twice; those of certificates do where one process runs all and another runs them alone, which does no harm and
    /// costs requests.
    pub const fn lease(self) -> &'static str {
        match self {
            Self::All | Self::Bundles => LEASE,
            Self::Certificates => "windlass-certificates",
        }
    }
}

impl FromStr for Controllers {
    type Err = UnknownController;

    fn from_str(text: &str) -> Result<Self, UnknownController> {
        let mut chosen = None;
        for name in text.split(',').map(str::trim) {
            let one = match name {
                CERTIFICATES => Self::Certificates,
                BUNDLES => Self::Bundles,
                other => return Err(UnknownController(other.to_owned())),
            };
            chosen = match chosen {
                Some(before) if before != one => Some(Self::All),
                _ => Some(one),
            };
        }
        chosen.ok_or_else(|| UnknownController(text.to_owned()))
    }
}

impl fmt::Display for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(f, "{CERTIFICATES},{BUNDLES}"),
            Self::Certificates => f.write_str(CERTIFICATES),
            Self::Bundles => f.write_str(BUNDLES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_is_read_as_it_is_printed_and_the_halves_elect_apart() {
        for controllers in Controllers::EACH {
            assert_eq!(controllers.to_string().parse(), Ok(controllers));
        }
        assert_ne!(Controllers::Certificates.lease(), Controllers::Bundles.lease());
        assert_eq!(Controllers::All.lease(), Controllers::Bundles.lease());
    }

    #[test]
    fn a_list_has_any_order_and_nothing_else() {
        for (text, expected) in [
            ("bundles, certificates", Ok(Controllers::All)),
            ("bundles,bundles", Ok(Controllers::Bundles)),
            ("bundles,certificates,bundles", Ok(Controllers::All)),
            ("", Err(UnknownController(String::new()))),
            ("all", Err(UnknownController("all".to_owned()))),
            ("bundles,", Err(UnknownController(String::new()))),
        ] {
            assert_eq!(text.parse(), expected, "{text:?}");
        }
    }
}
