//! What the serving Secret is to hold.

use crate::{
    pki::Validity,
    rotation::{
        certificate::{CertificateId, Chain},
        observation::{PublishedSecret, Versioned},
        situation::{Situation, Urgency},
        step::{Leaf, Publication, Step},
    },
};

/// The write of the serving Secret that is due, if any.
pub(super) fn due(situation: &Situation<'_>) -> Option<Step> {
    if situation.bundle.is_empty() {
        return None;
    }
    let secret = situation.observation.serving.as_ref();
    let issued = issuable(situation);
    if issued.is_none() && situation.leaf().is_none() {
        return None;
    }
    let publication = Publication {
        replacing: secret.map(|Versioned { version, .. }| version.clone()),
        leaf: issued.map_or(Leaf::Keep, |(leaf, _)| leaf),
        cross: match issued {
            Some(_) => cross(situation),
            None => kept_cross(situation),
        },
        bundle: situation.bundle.clone(),
        authority: match issued {
            Some((_, signer)) => Some(signer),
            None => signer_of_leaf(situation),
        },
    };
    let is_done = situation
        .serving()
        .is_some_and(|serving| holds(serving, &publication));
    (!is_done).then_some(Step::PublishServing(publication))
}

/// The leaf that is to be issued now, with its CA: one is desired, a CA can sign it, and no target would fail for it.
fn issuable(situation: &Situation<'_>) -> Option<(Leaf, CertificateId)> {
    let signer = situation.signer()?.certificate;
    let validity = situation.timing.leaf_validity(situation.now(), &signer);
    let is_possible = !situation.refused && validity.contains(situation.now());
    if !is_possible || !is_leaf_desired(situation, &signer, &validity) {
        return None;
    }
    // The chain as targets will see it; its own fingerprint and key do not matter to them.
    let chain = Chain {
        leaf: CertificateId {
            issuer_key_id: signer.key_id,
            validity,
            ..signer
        },
        cross: cross(situation),
    };
    let is_pressing = situation.is_last_call() || situation.urgency() == Urgency::Emergency;
    // A target that takes writes is repaired first, and one that refuses is waited for until the last call. Of one that
    // somebody else overwrites each time, nothing better will come.
    let is_held = situation
        .observation
        .targets
        .iter()
        .filter(|target| !(target.is_contested() && situation.was_given(target, &chain)))
        .any(|target| situation.harms(target, &chain) && !(is_pressing && target.refused.is_some()));
    (!is_held).then_some((
        Leaf::Issue {
            by: signer.key_id,
            validity,
        },
        signer,
    ))
}

/// Whether a leaf of that CA with that validity is better than the one that is there.
fn is_leaf_desired(situation: &Situation<'_>, signer: &CertificateId, validity: &Validity) -> bool {
    let Some((serving, leaf)) = situation
        .serving()
        .and_then(|serving| Some((serving, serving.leaf.as_ref()?)))
    else {
        return true;
    };
    let now = situation.now();
    // A CA that may not sign what is asked for goes on with what it signed, until the next takes over.
    let is_other = !serving.as_asked && situation.urgency() < Urgency::Needed;
    // A new leaf is of no use while the calendar is before the CA's first day.
    let is_premature = now < leaf.validity.not_before && signer.is_valid_at(now);
    // At the end of a CA's life a new leaf would end with the old one.
    let is_due = situation.timing.leaf_renewal(leaf) <= now && leaf.validity.not_after < validity.not_after;
    !leaf.is_signed_by(signer)
        || is_premature
        || is_due
        || situation.timing.outlasts(leaf, now)
        || is_other
        || situation.authorities.replace.contains(&leaf.fingerprint)
}

/// The cross certificate that belongs behind a leaf of the current CA, while it is of use.
fn cross(situation: &Situation<'_>) -> Option<CertificateId> {
    let authorities = &situation.authorities;
    authorities.cross.filter(|cross| {
        !cross.has_ended_at(situation.now()) && !authorities.distrusted.contains(&cross.issuer_key_id)
    })
}

/// A cross certificate stays behind the leaf that it was published with, even past its end: nothing is gained by a
/// write that only takes it away, unless its issuer is distrusted.
fn kept_cross(situation: &Situation<'_>) -> Option<CertificateId> {
    let authorities = &situation.authorities;
    let is_ours = situation
        .leaf()
        .zip(authorities.current.as_ref())
        .is_some_and(|(leaf, current)| leaf.is_signed_by(&current.certificate));
    let published = situation.serving().and_then(|serving| serving.cross);
    if !is_ours {
        return published;
    }
    cross(situation).or_else(|| {
        published.filter(|cross| {
            Some(*cross) == authorities.cross && !authorities.distrusted.contains(&cross.issuer_key_id)
        })
    })
}

fn signer_of_leaf(situation: &Situation<'_>) -> Option<CertificateId> {
    let leaf = situation.leaf()?;
    situation
        .authorities
        .certificates()
        .find(|authority| leaf.is_signed_by(authority))
        .copied()
}

fn holds(serving: &PublishedSecret, publication: &Publication) -> bool {
    publication.leaf == Leaf::Keep
        && serving.cross == publication.cross
        && serving.bundle.as_ref() == Some(&publication.bundle)
        && serving.authority == publication.authority.map(|authority| authority.fingerprint)
}
