//! The desired contents of the serving Secret.

use crate::{
    pki::Validity,
    rotation::{
        certificate::{CertificateId, Chain},
        observation::{PublishedSecret, Versioned},
        situation::{Situation, Urgency},
        step::{Leaf, Publication, Step},
    },
};

/// Returns the write of the serving Secret that is due, if any.
pub(super) fn due_publication(situation: &Situation<'_>) -> Option<Step> {
    if situation.bundle.is_empty() {
        return None;
    }
    let secret = situation.observation.serving.as_ref();
    let issued = leaf_to_issue(situation);
    if issued.is_none() && situation.leaf().is_none() {
        return None;
    }
    let publication = Publication {
        replacing: secret.map(|Versioned { version, .. }| version.clone()),
        leaf: issued.map_or(Leaf::Keep, |(leaf, _)| leaf),
        cross: match issued {
            Some(_) => cross(situation),
            None => published_cross(situation),
        },
        bundle: situation.bundle.clone(),
        authority: match issued {
            Some((_, signer)) => Some(signer),
            None => signer_of_leaf(situation),
        },
    };
    let is_done = situation
        .serving()
        .is_some_and(|serving| is_published_as(serving, &publication));
    (!is_done).then_some(Step::PublishServing(publication))
}

/// Returns the leaf to issue now and its CA: a new one is desired, a CA can sign it, and no target would
/// reject it.
fn leaf_to_issue(situation: &Situation<'_>) -> Option<(Leaf, CertificateId)> {
    let signer = situation.signer()?.certificate;
    let validity = situation.timing.leaf_validity(situation.now(), &signer);
    let is_possible = !situation.refused && validity.contains(situation.now());
    if !is_possible || !is_leaf_desired(situation, &signer, &validity) {
        return None;
    }
    // The chain as targets see it; its own fingerprint and key do not matter to them.
    let chain = Chain {
        leaf: CertificateId {
            issuer_key_id: signer.key_id,
            validity,
            ..signer
        },
        cross: cross(situation),
    };
    let is_pressing = situation.is_in_last_sixth() || situation.urgency() == Urgency::Emergency;
    // Writable targets are repaired first; those that reject writes delay the leaf until the last sixth of
    // its lifetime. A target that another controller overwrites each time does not delay it.
    let is_held = situation
        .observation
        .targets
        .iter()
        .filter(|target| !(target.is_contested() && situation.was_written_trust_for(target, &chain)))
        .any(|target| situation.breaks_calls(target, &chain) && !(is_pressing && target.refused.is_some()));
    (!is_held).then_some((
        Leaf::Issue {
            by: signer.key_id,
            validity,
        },
        signer,
    ))
}

/// Reports whether to issue a leaf of `signer` with `validity`: there is none, or it is from another CA, due
/// for renewal, not valid yet, valid for too long, different from the spec, or to be replaced on request.
fn is_leaf_desired(situation: &Situation<'_>, signer: &CertificateId, validity: &Validity) -> bool {
    let Some((serving, leaf)) = situation
        .serving()
        .and_then(|serving| Some((serving, serving.leaf.as_ref()?)))
    else {
        return true;
    };
    let now = situation.now();
    // A CA that may not sign the names in the spec keeps its last leaf until the next CA takes over.
    let is_other = !serving.matches_spec && situation.urgency() < Urgency::Needed;
    // A new leaf is useless while the wall clock is before the CA's notBefore.
    let is_premature = now < leaf.validity.not_before && signer.is_valid_at(now);
    // At the end of a CA's lifetime a new leaf would expire no later than the old one.
    let is_due = situation.timing.leaf_renewal(leaf) <= now && leaf.validity.not_after < validity.not_after;
    !leaf.is_signed_by(signer)
        || is_premature
        || is_due
        || situation.timing.exceeds_lifetime(leaf, now)
        || is_other
        || situation.authorities.replace.contains(&leaf.fingerprint)
}

/// Returns the cross certificate for a leaf of the current CA, while it is useful.
fn cross(situation: &Situation<'_>) -> Option<CertificateId> {
    let authorities = &situation.authorities;
    authorities.cross.filter(|cross| {
        !cross.has_ended_at(situation.now()) && !authorities.distrusted.contains(&cross.issuer_key_id)
    })
}

/// Returns the cross certificate of the published leaf, even after it expired: a write only to remove it has
/// no benefit, unless its issuer is distrusted.
fn published_cross(situation: &Situation<'_>) -> Option<CertificateId> {
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

fn is_published_as(serving: &PublishedSecret, publication: &Publication) -> bool {
    publication.leaf == Leaf::Keep
        && serving.cross == publication.cross
        && serving.bundle.as_ref() == Some(&publication.bundle)
        && serving.authority == publication.authority.map(|authority| authority.fingerprint)
}
