//! What endpoints serve decides when a CA may go, and when servers are restarted.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::rotation::{
    certificate::{CertificateId, KeyId},
    observation::{Handshake, ObservedDeployment, ObservedEndpoint},
    situation::Situation,
    step::Step,
};

/// The retiring CAs whose signatures no endpoint serves, and none will.
pub(super) fn released(situation: &Situation<'_>) -> BTreeSet<KeyId> {
    let retiring = &situation.authorities.retiring;
    if retiring.is_empty() || !is_published(situation) {
        return BTreeSet::new();
    }
    retiring
        .iter()
        .filter(|authority| situation.knows_all_targets() || situation.authorities.distrusts(authority))
        .filter(|authority| hold_left(situation, authority).is_none())
        .map(|authority| authority.key_id)
        .collect()
}

/// How long a retiring CA is held at the least; nothing, if it is not.
pub(super) fn hold_left(situation: &Situation<'_>, authority: &CertificateId) -> Option<SignedDuration> {
    let timing = situation.timing;
    let left = |wait| published_wait(situation, wait);
    if situation.authorities.distrusts(authority) {
        return left(timing.reload);
    }
    let endpoints = situation.observation.endpoints.iter();
    endpoints
        .filter_map(|endpoint| match &endpoint.served {
            Handshake::Chain(chain) if situation.needs(&chain.leaf, authority) => Some(timing.poll),
            Handshake::Chain(_) => None,
            Handshake::Unobservable(_) if endpoint.ready => left(timing.reload),
            Handshake::Unobservable(_) => left(timing.start),
        })
        .chain(left(timing.overlap))
        .max()
}

/// Ready endpoints that were seen to serve another certificate than the one in the Secret.
pub(super) fn behind<'a>(
    situation: &'a Situation<'_>,
) -> impl Iterator<Item = (&'a ObservedEndpoint, CertificateId)> {
    let published = situation.leaf().map(|leaf| leaf.fingerprint);
    let ready = situation.observation.ready_endpoints();
    ready.filter_map(move |endpoint| {
        let leaf = endpoint.chain()?.leaf;
        (Some(leaf.fingerprint) != published).then_some((endpoint, leaf))
    })
}

/// The restart of a server that does not read its certificate again, once for each certificate.
pub(super) fn restart(situation: &Situation<'_>) -> Option<Step> {
    let rollout = situation.observation.rollout.as_ref()?;
    let wait = restart_wait(situation, rollout)?;
    let leaf = situation.leaf()?;
    (!wait.is_positive()).then(|| Step::RestartRollout {
        deployment: rollout.deployment.clone(),
        leaf: leaf.fingerprint,
    })
}

/// How long until a restart is due; nothing, if none is needed or it was done.
pub(super) fn restart_wait(
    situation: &Situation<'_>,
    rollout: &ObservedDeployment,
) -> Option<SignedDuration> {
    let leaf = situation.leaf()?;
    if rollout.restarted_for == Some(leaf.fingerprint) || rollout.progressing {
        return None;
    }
    // Certificates of others are none of our business: a proxy in front of the server serves its own.
    let old: Vec<_> = behind(situation)
        .map(|(_, leaf)| leaf)
        .filter(|leaf| is_ours(situation, leaf))
        .collect();
    let last_third = old.iter().map(|leaf| situation.timing.last_third(leaf)).min()?;
    let reload = published_wait(situation, situation.timing.reload).unwrap_or_default();
    let is_distrusted = |leaf: &CertificateId| situation.authorities.distrusted.contains(&leaf.issuer_key_id);
    let is_emergency = !is_distrusted(leaf) && old.iter().any(is_distrusted);
    if !rollout.costs_requests || is_emergency {
        return Some(reload);
    }
    Some(reload.max(situation.now().duration_until(last_third)))
}

/// Whether a CA signed it that is or was one of ours; of those that were, the last and the compromised are remembered.
fn is_ours(situation: &Situation<'_>, leaf: &CertificateId) -> bool {
    let authorities = &situation.authorities;
    let last = authorities.cross.map(|cross| cross.issuer_key_id);
    authorities.knows(leaf.issuer_key_id)
        || authorities.distrusted.contains(&leaf.issuer_key_id)
        || last == Some(leaf.issuer_key_id)
}

/// Whether the Secret was read back with a leaf of the current CA.
fn is_published(situation: &Situation<'_>) -> bool {
    let Some((leaf, current)) = situation.leaf().zip(situation.authorities.current.as_ref()) else {
        return false;
    };
    leaf.is_signed_by(&current.certificate) && situation.published_at().is_some()
}

/// What is left of a wait that began when the leaf was read back.
fn published_wait(situation: &Situation<'_>, wait: SignedDuration) -> Option<SignedDuration> {
    match situation.published_at() {
        Some(published) => situation.wait_left(&published, wait),
        None => Some(wait),
    }
}
