//! The target namespaces of an operator, and whether its bundle supports them.

use super::error::{RenderError, Supported, TargetNamespacesReason};
use crate::{
    parse::{ClusterServiceVersion, InstallMode},
    requests::WatchedNamespaces,
};

/// The namespaces that an operator watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TargetNamespaces {
    /// All namespaces.
    All,
    /// Only these namespaces, without duplicates, in the requested order.
    These(Vec<String>),
}

impl TargetNamespaces {
    /// Returns the requested namespaces if the bundle supports them. No namespace, or one empty name, means
    /// all.
    pub(super) fn new(
        csv: ClusterServiceVersion<'_>,
        own: &str,
        desired: &[String],
    ) -> Result<Self, RenderError> {
        let modes = csv.install_modes();
        let supports = |mode| modes.contains(&mode);
        let mut targets: Vec<String> = Vec::new();
        for name in desired {
            if !targets.contains(name) {
                targets.push(name.clone());
            }
        }
        if targets.is_empty() && supports(InstallMode::AllNamespaces) {
            return Ok(Self::All);
        }
        let supported = Supported(modes.clone());
        // An example for the message, valid in any cluster.
        let example = if supports(InstallMode::OwnNamespace) {
            own.to_owned()
        } else {
            "NAMESPACE".to_owned()
        };
        let reason = match targets.as_slice() {
            [] if supports(InstallMode::MultiNamespace) => TargetNamespacesReason::AtLeastOne(example),
            [] => TargetNamespacesReason::ExactlyOne(example),
            [all] if all.is_empty() && supports(InstallMode::AllNamespaces) => return Ok(Self::All),
            [all] if all.is_empty() => TargetNamespacesReason::All(supported),
            [one] if one == own && supports(InstallMode::OwnNamespace) => return Ok(Self::These(targets)),
            [one] if one == own => TargetNamespacesReason::Own(supported),
            [_] if supports(InstallMode::SingleNamespace) => return Ok(Self::These(targets)),
            [_, _, ..] if targets.iter().any(|name| name == own) && !supports(InstallMode::OwnNamespace) => {
                TargetNamespacesReason::Own(supported)
            }
            [_, _, ..]
                if supports(InstallMode::MultiNamespace) && targets.iter().all(|name| !name.is_empty()) =>
            {
                return Ok(Self::These(targets));
            }
            _ => TargetNamespacesReason::Others {
                supported,
                targets: targets.clone(),
            },
        };
        Err(RenderError::TargetNamespaces { targets, reason })
    }

    /// The namespaces in which webhooks are called, for an operator in the namespace `own`.
    pub(super) fn watched(&self, own: &str) -> WatchedNamespaces {
        match self {
            Self::All => WatchedNamespaces::ALL,
            Self::These(names) => WatchedNamespaces {
                all: false,
                own: names.iter().any(|name| name == own),
            },
        }
    }

    /// The value of the annotation that operators read their watched namespaces from.
    pub(super) fn annotation(&self) -> String {
        match self {
            Self::All => String::new(),
            Self::These(names) => names.join(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn csv(supported: &[InstallMode]) -> Value {
        let modes: Vec<_> = InstallMode::ALL
            .iter()
            .map(|mode| json!({"type": mode.name(), "supported": supported.contains(mode)}))
            .collect();
        json!({"spec": {"installModes": modes}})
    }

    #[test]
    fn install_modes_are_checked_as_in_olm() {
        use InstallMode::{AllNamespaces, MultiNamespace, OwnNamespace, SingleNamespace};
        for (supported, desired, expected) in [
            (&[AllNamespaces][..], &[][..], Ok("")),
            (&[AllNamespaces], &[""], Ok("")),
            (&[OwnNamespace, AllNamespaces], &["own"], Ok("own")),
            (&[SingleNamespace], &["other"], Ok("other")),
            (&[SingleNamespace], &["other", "other"], Ok("other")),
            (&[OwnNamespace, MultiNamespace], &["b", "own", "a"], Ok("b,own,a")),
            (
                &[OwnNamespace],
                &[],
                Err(
                    "[]: exactly one target namespace must be specified: use --watch-namespace own, or spec.watchNamespaces",
                ),
            ),
            (
                &[MultiNamespace],
                &[],
                Err(
                    "[]: at least one target namespace must be specified: use --watch-namespace NAMESPACE, or spec.watchNamespaces",
                ),
            ),
            (
                &[OwnNamespace],
                &[""],
                Err("[]: supported install modes [OwnNamespace] do not support targeting all namespaces"),
            ),
            (
                &[SingleNamespace, AllNamespaces],
                &["own"],
                Err(
                    "[own]: supported install modes [AllNamespaces SingleNamespace] do not support targeting own namespace",
                ),
            ),
            (
                &[MultiNamespace],
                &["own", "a"],
                Err(
                    "[own a]: supported install modes [MultiNamespace] do not support targeting own namespace",
                ),
            ),
            (
                &[AllNamespaces],
                &["a", "b"],
                Err("[a b]: supported install modes [AllNamespaces] do not support target namespaces [a b]"),
            ),
            (
                &[OwnNamespace],
                &["other"],
                Err(
                    "[other]: supported install modes [OwnNamespace] do not support target namespaces [other]",
                ),
            ),
            (
                &[AllNamespaces, MultiNamespace],
                &["", "a"],
                Err(
                    "[ a]: supported install modes [AllNamespaces MultiNamespace] do not support target namespaces [ a]",
                ),
            ),
        ] {
            let csv = csv(supported);
            let desired: Vec<_> = desired.iter().map(|name| (*name).to_owned()).collect();
            let got = TargetNamespaces::new(ClusterServiceVersion::new(&csv), "own", &desired)
                .map(|targets| targets.annotation())
                .map_err(|error| error.to_string());
            let expected = expected
                .map(str::to_owned)
                .map_err(|reason| format!("invalid option(s): invalid target namespaces {reason}"));
            assert_eq!(got, expected);
        }
    }
}
