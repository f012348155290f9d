//! The kinds of policies, as the cluster has them.

use windlass_cluster::{Kind, kinds, watch::Watch};

/// All of them.
pub(crate) const POLICY_KINDS: [Kind; 3] = [
    kinds::CLUSTER_OVERRIDE_POLICY,
    kinds::OVERRIDE_POLICY,
    kinds::CLUSTER_VALIDATE_POLICY,
];

/// What sees all policies.
pub(super) fn watches() -> impl Iterator<Item = Watch> {
    POLICY_KINDS.into_iter().map(Watch::all)
}

/// Whether objects of a kind are policies.
pub(crate) fn is_policy(kind: &Kind) -> bool {
    POLICY_KINDS.contains(kind)
}

#[cfg(test)]
mod tests {
    use policy::{PolicyKind, api::POLICY_API_VERSION};

    use super::*;

    #[test]
    fn the_kinds_that_are_watched_are_those_that_are_defined() {
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
