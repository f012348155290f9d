//! Counts of endpoints and targets that are as they should be.

use crate::rotation::situation::Situation;

/// How many endpoints, or targets, there are and are as they should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounts {
    /// Endpoints that are ready, or targets.
    pub total: usize,
    /// Those of them that serve the certificate in the Secret, or carry the trust bundle.
    pub current: usize,
}

// === impl EndpointCounts ===

impl EndpointCounts {
    /// How many ready endpoints serve the certificate in the Secret.
    pub(super) fn of_endpoints(situation: &Situation<'_>) -> Self {
        let ready = || situation.observation.ready_endpoints();
        Self {
            total: ready().count(),
            current: ready()
                .filter(|endpoint| endpoint.serves(situation.leaf()))
                .count(),
        }
    }

    /// How many targets carry the trust bundle.
    pub(super) fn of_targets(situation: &Situation<'_>) -> Self {
        let targets = &situation.observation.targets;
        Self {
            total: targets.len(),
            current: targets
                .iter()
                .filter(|target| situation.is_current(target))
                .count(),
        }
    }
}
