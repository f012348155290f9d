//! Determines which change of the CA Secret is due. There is at most one, and the plan has no other step
//! then.

use std::collections::BTreeSet;

use crate::{
    pki::Validity,
    rotation::{
        ca_state::{CaChange, CaTemplate, Published, Trust},
        certificate::CertificateId,
        endpoints::{self, MAX_RETIRING},
        request::ManualRotation,
        situation::{Situation, Urgency},
        timing,
    },
};

/// Returns the change that is due, if any.
pub(super) fn due_change(situation: &Situation<'_>) -> Option<CaChange> {
    if situation.authorities.is_empty() {
        return (!situation.refused).then(|| create(situation));
    }
    adopt(situation)
        .or_else(|| record_published(situation))
        .or_else(|| record_trust(situation))
        .or_else(|| start_rotation(situation))
        .or_else(|| promote(situation))
        .or_else(|| retire(situation))
        .or_else(|| issue_next(situation))
        .or_else(|| record_served(situation))
}

/// If nothing is served yet, the first CA signs immediately. Otherwise the CAs of served certificates stay
/// trusted until the first CA of Windlass has taken over like any next CA.
fn create(situation: &Situation<'_>) -> CaChange {
    let retiring = situation.unknown_issuers();
    let first = template(situation);
    let (current, next) = if retiring.is_empty() {
        let next = CaTemplate {
            generation: first.generation + 1,
            ..first
        };
        (Some((first, situation.now())), next)
    } else {
        (None, first)
    };
    CaChange::Create {
        current,
        next,
        retiring,
        request: situation.observation.request.clone(),
    }
}

/// Limited to few CAs: otherwise a user who can write the serving Secret could add a trusted CA with each
/// write.
fn adopt(situation: &Situation<'_>) -> Option<CaChange> {
    let mut certificates = situation.unknown_issuers();
    let retiring = situation.authorities.retiring.len();
    certificates.truncate(MAX_RETIRING.saturating_sub(retiring));
    // Certificates that an adopted CA signs later are ignored, whatever their validity.
    let until = timing::after(situation.now(), situation.timing.leaf_life);
    (!certificates.is_empty()).then_some(CaChange::Adopt { certificates, until })
}

/// From then on servers have time to reload.
fn record_published(situation: &Situation<'_>) -> Option<CaChange> {
    let serving = situation.observation.serving.as_ref()?;
    let leaf = serving.content.leaf?;
    situation
        .published_at()
        .is_none()
        .then(|| CaChange::RecordPublished {
            published: Published {
                contents: serving.content.contents(),
                at: situation.observation.clock.mark,
            },
            leaf,
        })
}

/// The next CA is known once all targets were read back with it. A target that loses it later is repaired and
/// read back again.
fn record_trust(situation: &Situation<'_>) -> Option<CaChange> {
    let is_news = !matches!(situation.authorities.trust, Trust::Known(_));
    (is_news && situation.knows_all_targets() && situation.next_is_everywhere()).then_some(
        CaChange::RecordTrust(Trust::Known(situation.observation.clock.mark)),
    )
}

/// Starts the manual rotation that a user requests, once per value of the annotation.
fn start_rotation(situation: &Situation<'_>) -> Option<CaChange> {
    let authorities = &situation.authorities;
    let value = situation.observation.request.as_ref()?;
    if authorities.request.as_ref() == Some(value) {
        return None;
    }
    let request: ManualRotation = value.parse().ok()?;
    let leaf = situation.leaf().map(|leaf| leaf.fingerprint);
    let current = authorities
        .current
        .as_ref()
        .map(|authority| authority.certificate);
    let next = authorities.next.as_ref().map(|authority| authority.certificate);

    // Pending replacements stay; those of certificates that are no longer in use are done.
    let in_use: BTreeSet<_> = leaf
        .into_iter()
        .chain(current.map(|authority| authority.fingerprint))
        .collect();
    let mut replace: BTreeSet<_> = authorities.replace.intersection(&in_use).copied().collect();
    let mut distrusted = authorities.distrusted.clone();
    let signed = current.iter().chain(&authorities.retiring);
    match request {
        ManualRotation::Leaf => replace.extend(leaf),
        ManualRotation::Authority => replace.extend(current.map(|authority| authority.fingerprint)),
        ManualRotation::Compromised => distrusted.extend(signed.map(|authority| authority.key_id)),
        ManualRotation::AllCompromised => {
            distrusted.extend(signed.chain(&next).map(|authority| authority.key_id));
        }
    }
    Some(CaChange::StartRotation {
        request: value.clone(),
        replace,
        distrusted,
    })
}

/// Lets the next CA sign once it is due and every target trusts it. If the current CA is compromised, targets
/// that reject writes and kinds that cannot be listed do not count.
fn promote(situation: &Situation<'_>) -> Option<CaChange> {
    let authorities = &situation.authorities;
    let next = &situation.usable_next()?.certificate;
    let urgency = situation.urgency();
    match urgency {
        Urgency::NotDue => return None,
        Urgency::Due if endpoints::is_next_rotation_held(situation) => return None,
        Urgency::Due | Urgency::Needed | Urgency::Emergency => {}
    }
    let is_known = situation.next_is_trusted()
        && (urgency == Urgency::Emergency
            || (situation.knows_all_targets()
                && situation.refusing_targets().all(|target| target.trusts(next))));
    if !next.is_valid_at(situation.now()) || (!is_known && !is_last_chance(situation)) {
        return None;
    }
    let cross = situation
        .signer()
        .filter(|current| !authorities.distrusts(&current.certificate))
        .map(|current| current.certificate.validity.intersection(next.validity))
        .filter(|validity| validity.contains(situation.now()));
    Some(CaChange::Promote {
        at: situation.now(),
        cross,
    })
}

/// The serving certificate expires soon, and the current CA cannot sign a new one that lasts. Then promotion
/// ignores targets that reject writes and kinds that cannot be listed. It still waits for all others, because
/// servers have enough time left for that.
fn is_last_chance(situation: &Situation<'_>) -> bool {
    let is_given = match situation.knows_all_targets() {
        true => situation.next_is_trusted(),
        false => situation.next_is_everywhere() && situation.trust_wait().is_none(),
    };
    is_given
        && situation.is_in_last_sixth()
        && situation.signer().is_none_or(|current| {
            let Validity { not_after, .. } = current.certificate.validity;
            situation.now().duration_until(not_after) <= situation.timing.leaf_life / 6
        })
}

/// Removes CAs that nothing needs. The write that removes the last one also creates the next CA.
fn retire(situation: &Situation<'_>) -> Option<CaChange> {
    let key_ids = endpoints::releasable_cas(situation);
    if key_ids.is_empty() {
        return None;
    }
    let is_last = situation
        .authorities
        .retiring
        .iter()
        .all(|authority| key_ids.contains(&authority.key_id));
    let is_next_missing = situation.authorities.next.is_none();
    let next = (is_last && is_next_missing && !situation.refused).then(|| template(situation));
    Some(CaChange::Retire { key_ids, next })
}

/// Once all endpoints serve the certificate in the Secret, earlier ones are never served again.
fn record_served(situation: &Situation<'_>) -> Option<CaChange> {
    let leaf = situation.leaf()?;
    (may_record_served(situation) && endpoints::overlap_left(situation).is_none())
        .then_some(CaChange::RecordServed(leaf.fingerprint))
}

/// Reports whether all endpoints serve the certificate in the Secret, and an earlier one is remembered that
/// no retiring CA needs.
pub(super) fn may_record_served(situation: &Situation<'_>) -> bool {
    let retiring = &situation.authorities.retiring;
    let is_held = |leaf: &CertificateId| retiring.iter().any(|authority| leaf.is_signed_by(authority));
    endpoints::is_served_everywhere(situation)
        && endpoints::replaced_leaves(situation).any(|leaf| !is_held(leaf))
}

/// A next CA is normally created with the last retirement. It is created earlier if no CA retires or the next
/// rotation requires it.
fn issue_next(situation: &Situation<'_>) -> Option<CaChange> {
    if situation.refused || situation.usable_next().is_some() {
        return None;
    }
    let is_awaited = !situation.authorities.retiring.is_empty()
        && match situation.urgency() {
            Urgency::NotDue => true,
            Urgency::Due => endpoints::is_next_rotation_held(situation),
            Urgency::Needed | Urgency::Emergency => false,
        };
    let is_awaited = is_awaited && situation.authorities.next.is_none();
    (!is_awaited).then(|| CaChange::IssueNext(template(situation)))
}

fn template(situation: &Situation<'_>) -> CaTemplate {
    CaTemplate {
        generation: situation.authorities.generation + 1,
        validity: situation.timing.authority_validity(situation.now()),
    }
}
