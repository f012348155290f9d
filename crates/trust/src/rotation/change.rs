//! Which change of the CA Secret is due. There is at most one, and nothing else is done beside it.

use std::collections::BTreeSet;

use crate::{
    pki::Validity,
    rotation::{
        ca_state::{CaChange, CaTemplate, Published, Trust},
        certificate::CertificateId,
        endpoints::{self, MOST_BLIND},
        request::ManualRotation,
        situation::{Situation, Urgency},
        timing,
    },
};

/// The change that is due, if any.
pub(super) fn due(situation: &Situation<'_>) -> Option<CaChange> {
    if situation.authorities.is_empty() {
        return (!situation.refused).then(|| found(situation));
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

/// Where there is nothing to protect, the first CA signs at once. Where something is served already, its CAs stay
/// trusted until the first of ours has taken over like any next one.
fn found(situation: &Situation<'_>) -> CaChange {
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
    CaChange::Found {
        current,
        next,
        retiring,
        request: situation.observation.request.clone(),
    }
}

/// Only while few CAs retire: whoever may write the serving Secret would have another one trusted with each write.
fn adopt(situation: &Situation<'_>) -> Option<CaChange> {
    let mut certificates = situation.unknown_issuers();
    let retiring = situation.authorities.retiring.len();
    certificates.truncate(MOST_BLIND.saturating_sub(retiring));
    // What an adopted CA signed after that is none of ours, whatever dates it has.
    let until = timing::after(situation.now(), situation.timing.leaf_life);
    (!certificates.is_empty()).then_some(CaChange::Adopt { certificates, until })
}

/// From here on servers have the time that they need to read it.
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

/// The next CA is known once everything was read back with it. What loses it later is repaired, and waited for again.
fn record_trust(situation: &Situation<'_>) -> Option<CaChange> {
    let is_news = !matches!(situation.authorities.trust, Trust::Known(_));
    (is_news && situation.knows_all_targets() && situation.next_is_everywhere()).then_some(
        CaChange::RecordTrust(Trust::Known(situation.observation.clock.mark)),
    )
}

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

    // A request that is not done yet stays; one whose certificate is gone was.
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
    if !next.is_valid_at(situation.now()) || (!is_known && !is_now_or_never(situation)) {
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

/// The serving certificate ends soon, and the current CA can sign no other that lasts: what refuses or cannot be listed is
/// not waited for. Everything else is, because that takes no longer than servers have left.
fn is_now_or_never(situation: &Situation<'_>) -> bool {
    let is_given = match situation.knows_all_targets() {
        true => situation.next_is_trusted(),
        false => situation.next_is_everywhere() && situation.trust_wait().is_none(),
    };
    is_given
        && situation.is_last_call()
        && situation.signer().is_none_or(|current| {
            let Validity { not_after, .. } = current.certificate.validity;
            situation.now().duration_until(not_after) <= situation.timing.leaf_life / 6
        })
}

/// CAs that nothing holds any more go, and with the last of them the next CA comes, in the same write.
fn retire(situation: &Situation<'_>) -> Option<CaChange> {
    let key_ids = endpoints::released(situation);
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

/// Once everything was seen on the certificate in the Secret, none before it is served again.
fn record_served(situation: &Situation<'_>) -> Option<CaChange> {
    let leaf = situation.leaf()?;
    (may_record_served(situation) && endpoints::overlap_left(situation).is_none())
        .then_some(CaChange::RecordServed(leaf.fingerprint))
}

/// Whether everything serves the certificate in the Secret, and one of before is remembered that no retiring CA needs.
pub(super) fn may_record_served(situation: &Situation<'_>) -> bool {
    let retiring = &situation.authorities.retiring;
    let is_held = |leaf: &CertificateId| retiring.iter().any(|authority| leaf.is_signed_by(authority));
    endpoints::is_served_everywhere(situation) && endpoints::replaced(situation).any(|leaf| !is_held(leaf))
}

/// A next CA is made with the last retirement, and otherwise where there is none to wait for, or the next rotation
/// cannot begin without.
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
