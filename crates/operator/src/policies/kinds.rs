//! The kinds of policies, as the cluster has them.

use policy::PolicyKind;
use windlass_cluster::{Kind, kinds, watch::Watch};

/// What sees all policies.
pub(super) fn watches() -> impl Iterator<Item = Watch> {
    PolicyKind::ALL.into_iter().map(cluster_kind).map(Watch::all)
}

/// Whether objects of a kind are policies.
pub(super) fn is_policy(kind: &Kind) -> bool {
    PolicyKind::ALL
        .into_iter()
        .any(|policy| cluster_kind(policy) == *kind)
}

/// A kind of policies, as the cluster has it.
pub(super) fn cluster_kind(kind: PolicyKind) -> Kind {
    match kind {
        PolicyKind::ClusterOverridePolicy => kinds::CLUSTER_OVERRIDE_POLICY,
        PolicyKind::OverridePolicy => kinds::OVERRIDE_POLICY,
        PolicyKind::ClusterValidatePolicy => kinds::CLUSTER_VALIDATE_POLICY,
    }
}

#[cfg(test)]
mod tests {
    use policy::api::POLICY_API_VERSION;

    use super::*;

    #[test]
    fn the_kinds_that_are_watched_are_those_that_are_defined() {
        for kind in PolicyKind::ALL {
            let watched = cluster_kind(kind);
            assert_eq!(
                (&*watched.api_version, &*watched.kind),
                (POLICY_API_VERSION, kind.name())
            );
            assert!(is_policy(&watched));
        }
        assert_eq!(watches().count(), policy::crds().len());
    }
}
