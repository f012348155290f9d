//! Verification by clients.

use jiff::Timestamp;

use crate::rotation::{
    CertificateId, Chain, KeyId, TrustSet,
    tests::{lag::Stage, world::World},
};

impl World {
    /// Reports whether all certificates of ready endpoints verify under every target's trust bundle, as
    /// written and as the slowest API server has it, at the true time. Ignores targets that were emptied or
    /// carry only distrusted keys, certificates of distrusted keys, and expired certificates.
    pub(super) fn is_trusted(&self) -> bool {
        let true_now = self.now - self.skew;
        let is_given_up = |key_id: &KeyId| self.compromised.contains(key_id);
        let is_lost = |bundle: &TrustSet| bundle.iter().all(|authority| is_given_up(&authority.key_id));
        let bundles = || {
            self.targets.iter().flat_map(|target| {
                let bundles = target.bundle.iter().chain(&target.effective);
                bundles.filter(|bundle| target.stale.as_ref() != Some(bundle) || !is_lost(bundle))
            })
        };
        let ready = self.pods.iter().filter(|pod| pod.stage == Stage::Ready);
        ready
            .flat_map(|pod| pod.chains())
            .filter(|chain| !chain.leaf.has_ended_at(true_now))
            .filter(|chain| self.prompt || !is_given_up(&chain.leaf.issuer_key_id))
            .all(|chain| bundles().all(|bundle| verifies(bundle, &chain, true_now)))
    }
}

/// Reports whether a client verifies the chain, as Go does: the keys match and every certificate is valid.
fn verifies(bundle: &TrustSet, chain: &Chain, moment: Timestamp) -> bool {
    let trusts = |key_id: KeyId| {
        let mut roots = bundle.iter().filter(|root| root.key_id == key_id);
        roots.any(|root| root.is_valid_at(moment))
    };
    let by_cross = |cross: CertificateId| {
        let fits = cross.key_id == chain.leaf.issuer_key_id && cross.is_valid_at(moment);
        fits && trusts(cross.issuer_key_id)
    };
    chain.leaf.is_valid_at(moment) && (trusts(chain.leaf.issuer_key_id) || chain.cross.is_some_and(by_cross))
}
