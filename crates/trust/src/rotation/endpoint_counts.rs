//! Counts of endpoints and targets that are as they should be.

use crate::rotation::{observation::Handshake, situation::Situation};

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounts {
    /// All.
    pub total: usize,
    /// Those that have what they should.
    pub current: usize,
}

// === impl Tally ===

impl EndpointCounts {
    /// How many ready endpoints serve the certificate in the Secret.
    pub(super) fn of_endpoints(situation: &Situation<'_>) -> Self {
        let published = situation.leaf().map(|leaf| leaf.fingerprint);
        let ready = || situation.observation.ready_endpoints();
        let serves = |served: &Handshake| match served {
            Handshake::Chain(chain) => Some(chain.leaf.fingerprint) == published,
            Handshake::Unobservable(_) => false,
        };
        Self {
            total: ready().count(),
            current: ready().filter(|endpoint| serves(&endpoint.served)).count(),
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
