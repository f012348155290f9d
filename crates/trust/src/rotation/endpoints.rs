//! What endpoints serve decides when a CA may go, and when servers are restarted.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::rotation::{
    certificate::{CertificateId, KeyId},
    observation::{ObservedEndpoint, ObservedWorkload},
    situation::Situation,
    step::Step,
    timing,
};

/// What keeps a CA trusted that does not sign any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// A wait, of which so much is left.
    Wait(SignedDuration),
    /// An endpoint was seen on what it signed.
    Served,
    /// Something was not seen, and may serve what it signed until then.
    Blind(Timestamp),
}

/// How many CAs may be held for what is not seen before the next rotation waits, and none is adopted any more: each makes
/// every trust bundle longer.
pub(super) const MOST_BLIND: usize = 3;

/// The retiring CAs whose signatures no endpoint serves, and none will.
pub(super) fn released(situation: &Situation<'_>) -> BTreeSet<KeyId> {
    let retiring = &situation.authorities.retiring;
    if retiring.is_empty() || !is_published(situation) {
        return BTreeSet::new();
    }
    retiring
        .iter()
        .filter(|authority| situation.knows_all_targets() || situation.authorities.distrusts(authority))
        .filter(|authority| hold(situation, authority).is_none())
        .map(|authority| authority.key_id)
        .collect()
}

/// What holds a retiring CA, if anything does.
pub(super) fn hold(situation: &Situation<'_>, authority: &CertificateId) -> Option<Hold> {
    let timing = situation.timing;
    if situation.authorities.distrusts(authority) {
        return reload_left(situation).map(Hold::Wait);
    }
    let endpoints = &situation.observation.endpoints;
    let mut chains = endpoints.iter().flat_map(|endpoint| &endpoint.chains);
    if chains.any(|chain| situation.needs(&chain.leaf, authority)) {
        return Some(Hold::Served);
    }
    if let Some(left) = overlap_left(situation) {
        return Some(Hold::Wait(left));
    }
    let over = timing.surely_over(situation.authorities.signatures_end(authority));
    (situation.observation.is_blind() && situation.now() <= over).then_some(Hold::Blind(over))
}

/// Whether a rotation goes on that can be seen to end, not one that only waits for the end of what cannot be seen.
pub(super) fn is_under_way(situation: &Situation<'_>) -> bool {
    let is_blind = |authority| matches!(hold(situation, authority), Some(Hold::Blind(_)));
    !situation.authorities.retiring.iter().all(is_blind)
}

/// Whether the next rotation has to wait for the one before.
pub(super) fn is_next_rotation_held(situation: &Situation<'_>) -> bool {
    situation.authorities.retiring.len() >= MOST_BLIND || is_under_way(situation)
}

/// After how long to look again at what nothing tells about: often while servers have their time, then less and less
/// often.
pub(super) fn look_again(situation: &Situation<'_>) -> SignedDuration {
    let timing = situation.timing;
    let since = situation
        .published_at()
        .map(|at| situation.observation.clock.since(&at));
    let late = since.unwrap_or_default().saturating_sub(timing.reload);
    late.clamp(timing.poll, timing.longest_sleep.max(timing.poll))
}

/// Whether every endpoint was seen on the serving certificate in the Secret.
pub(super) fn is_served_everywhere(situation: &Situation<'_>) -> bool {
    let leaf = situation.leaf();
    let mut endpoints = situation.observation.endpoints.iter();
    !situation.observation.is_blind() && endpoints.all(|endpoint| endpoint.serves(leaf))
}

/// Serving certificates that were published before the one in the Secret, and have not surely ended.
pub(super) fn replaced<'a>(situation: &'a Situation<'_>) -> impl Iterator<Item = &'a CertificateId> {
    let published = situation.leaf().map(|leaf| leaf.fingerprint);
    let leaves = situation.authorities.leaves.iter();
    leaves
        .filter(move |leaf| Some(leaf.fingerprint) != published)
        .filter(|leaf| situation.now() <= situation.timing.surely_over(leaf.validity.not_after))
}

/// Ready endpoints that serve a certificate of before, or may, although they had their time, and the one that they
/// serve, in the last sixth of its life: calls fail from its end on.
pub(super) fn not_reloaded<'a>(
    situation: &'a Situation<'_>,
) -> impl Iterator<Item = (&'a ObservedEndpoint, CertificateId)> {
    let is_pressing = |leaf: &CertificateId| {
        situation.timing.last_call(leaf) <= situation.now()
            || !situation.authorities.knows(leaf.issuer_key_id)
    };
    let soonest = replaced(situation)
        .min_by_key(|leaf| leaf.validity.not_after)
        .copied();
    let unseen = situation.observation.ready_endpoints();
    let unseen = unseen.filter(move |endpoint| may_serve(situation, endpoint));
    let unseen = unseen.filter_map(move |endpoint| Some((endpoint, soonest?)));
    let late = behind(situation)
        .filter(|(_, leaf)| is_ours(situation, leaf))
        .chain(unseen);
    late.filter(move |(_, leaf)| is_pressing(leaf) && is_overdue(situation, leaf))
}

/// Whether servers had their time to read what came after a serving certificate, by either clock. That began with the first that
/// came: what is published later, or another process that leads, does not begin it anew.
fn is_overdue(situation: &Situation<'_>, leaf: &CertificateId) -> bool {
    let came_later = |other: &&CertificateId| other.validity.not_before > leaf.validity.not_before;
    let leaves = &situation.authorities.leaves;
    let published = situation.leaf().or(leaves.last());
    let next = leaves.iter().filter(came_later).chain(published);
    let next = next.map(|next| issued_at(situation, next)).min();
    let was_long_ago = |issued| situation.now() > timing::after(issued, situation.timing.reload);
    reload_left(situation).is_none() || next.is_some_and(was_long_ago)
}

/// When a serving certificate was issued, by the calendar.
fn issued_at(situation: &Situation<'_>, leaf: &CertificateId) -> Timestamp {
    timing::after(leaf.validity.not_before, situation.timing.tolerance())
}

/// Whether the endpoint may serve what was published before, for all that is known: it could not be dialled, and its
/// pod was there before.
fn may_serve(situation: &Situation<'_>, endpoint: &ObservedEndpoint) -> bool {
    let is_new = |created: Timestamp| {
        let leaf = situation.leaf();
        leaf.is_some_and(|leaf| created > timing::after(issued_at(situation, leaf), situation.timing.reload))
    };
    endpoint.unobservable.is_some() && !endpoint.created.is_some_and(is_new)
}

/// Ready endpoints that were seen to serve another certificate than the one in the Secret.
pub(super) fn behind<'a>(
    situation: &'a Situation<'_>,
) -> impl Iterator<Item = (&'a ObservedEndpoint, CertificateId)> {
    let published = situation.leaf().map(|leaf| leaf.fingerprint);
    let ready = situation.observation.ready_endpoints();
    ready.filter_map(move |endpoint| {
        let leaves = endpoint.chains.iter().map(|chain| chain.leaf);
        let old = leaves.filter(|leaf| Some(leaf.fingerprint) != published);
        Some((endpoint, old.min_by_key(|leaf| leaf.validity.not_after)?))
    })
}

/// The restarts of servers that do not read their certificate again, once for each certificate.
pub(super) fn restarts<'a>(situation: &'a Situation<'_>) -> impl Iterator<Item = Step> + 'a {
    let leaf = situation.leaf().map(|leaf| leaf.fingerprint);
    let due = restart_waits(situation).filter(|(_, wait)| !wait.is_positive());
    due.filter_map(move |(workload, _)| {
        Some(Step::RestartRollout {
            workload: workload.id.clone(),
            leaf: leaf?,
        })
    })
}

/// How long until restarts are due: of what needs one that was not done yet.
pub(super) fn restart_waits<'a>(
    situation: &'a Situation<'_>,
) -> impl Iterator<Item = (&'a ObservedWorkload, SignedDuration)> {
    let workloads = situation.observation.workloads.iter();
    workloads.filter_map(move |workload| Some((workload, restart_wait(situation, workload)?)))
}

fn restart_wait(situation: &Situation<'_>, workload: &ObservedWorkload) -> Option<SignedDuration> {
    let leaf = situation.leaf()?;
    if workload.restarted_for == Some(leaf.fingerprint) || workload.progressing {
        return None;
    }
    let has = |endpoint: &ObservedEndpoint| workload.pods.contains(&endpoint.name);
    // Certificates of others are none of our business: a proxy in front of the server serves its own.
    let old: Vec<_> = behind(situation)
        .filter(|(endpoint, _)| has(endpoint))
        .map(|(_, leaf)| leaf)
        .filter(|leaf| is_ours(situation, leaf))
        .collect();
    let is_distrusted = |leaf: &CertificateId| situation.authorities.distrusted.contains(&leaf.issuer_key_id);
    let reload = reload_left(situation).unwrap_or_default();
    let until_last_third = |leaf: &CertificateId| {
        let last_third = situation.timing.last_third(leaf);
        reload.max(situation.now().duration_until(last_third))
    };
    let Some(seen) = old.iter().map(until_last_third).min() else {
        // What nobody sees may have reloaded: it is restarted only where that costs nothing.
        let mut ready = situation.observation.ready_endpoints();
        let may_serve = |endpoint| has(endpoint) && may_serve(situation, endpoint);
        let is_free = !workload.costs_requests && ready.any(may_serve);
        let replaced = replaced(situation).map(|leaf| match is_distrusted(leaf) {
            true => reload,
            false => until_last_third(leaf),
        });
        return replaced.min().filter(|_| is_free);
    };
    let is_emergency = !is_distrusted(leaf) && old.iter().any(is_distrusted);
    if !workload.costs_requests || is_emergency {
        return Some(reload);
    }
    Some(seen)
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

/// How long a pod that starts may still be given what was in the Secret before.
pub(super) fn overlap_left(situation: &Situation<'_>) -> Option<SignedDuration> {
    published_wait(situation, situation.timing.overlap)
}

/// What is left of the time that servers have to read the certificate in the Secret.
pub(super) fn reload_left(situation: &Situation<'_>) -> Option<SignedDuration> {
    published_wait(situation, situation.timing.reload)
}

/// What is left of a wait that began when the leaf was read back.
fn published_wait(situation: &Situation<'_>, wait: SignedDuration) -> Option<SignedDuration> {
    match situation.published_at() {
        Some(published) => situation.wait_left(&published, wait),
        None => Some(wait),
    }
}
