//! How many endpoints and targets are up to date.

use crate::rotation::situation::Situation;

/// How many endpoints or targets exist and are up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounts {
    /// Ready endpoints, or targets.
    pub total: usize,
    /// How many of these serve the certificate in the Secret, or carry the trust bundle.
    pub current: usize,
}

impl EndpointCounts {
    /// Counts ready endpoints and those that serve the certificate in the Secret.
    pub(super) fn from_endpoints(situation: &Situation<'_>) -> Self {
        let ready = || situation.observation.ready_endpoints();
        Self {
            total: ready().count(),
            current: ready()
                .filter(|endpoint| endpoint.serves(situation.leaf()))
                .count(),
        }
    }

    /// Counts targets and those that carry the trust bundle.
    pub(super) fn from_targets(situation: &Situation<'_>) -> Self {
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
