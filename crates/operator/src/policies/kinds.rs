//! The kinds of policies, as the API server serves them.

use windlass_cluster::{Kind, kinds, watch::Watch};

pub(crate) const POLICY_KINDS: [Kind; 3] = [
    kinds::CLUSTER_OVERRIDE_POLICY,
    kinds::OVERRIDE_POLICY,
    kinds::CLUSTER_VALIDATE_POLICY,
];

/// Returns the watches of all policies.
pub(super) fn watches() -> impl Iterator<Item = Watch> {
    POLICY_KINDS.into_iter().map(Watch::all)
}

pub(crate) fn is_policy(kind: &Kind) -> bool {
    POLICY_KINDS.contains(kind)
}

#[cfg(test)]
mod tests {
    use policy::{PolicyKind, api::POLICY_API_VERSION};

    use super::*;

    #[test]
    fn the_watched_kinds_are_the_defined_kinds() {
        for kind in PolicyKind::ALL {
            assert!(
                is_policy(&Kind::named(POLICY_API_VERSION, kind.name())),
                "{}",
                kind.name()
            );
        }
        assert_eq!(
            (watches().count(), PolicyKind::ALL.len()),
            (policy::crds().len(), POLICY_KINDS.len())
        );
    }
}
