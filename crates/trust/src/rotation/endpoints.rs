//! Derives from the certificates that endpoints serve when a CA may be retired and when servers are
//! restarted.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::rotation::{
    certificate::{CertificateId, KeyId},
    observation::{ObservedEndpoint, ObservedWorkload},
    situation::Situation,
    step::Step,
    timing,
};

/// Why a CA that no longer signs stays trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// A wait, with the time left.
    Wait(SignedDuration),
    /// An endpoint serves a certificate of the CA.
    Served,
    /// A server that was not observed may serve a certificate of the CA until then.
    Unobserved(Timestamp),
}

/// How many CAs may be kept for servers that cannot be observed. With more, the next rotation waits and no CA
/// is adopted, because each CA makes every trust bundle larger.
pub(super) const MAX_RETIRING: usize = 3;

/// Returns the retiring CAs whose certificates no endpoint serves now or later.
pub(super) fn releasable_cas(situation: &Situation<'_>) -> BTreeSet<KeyId> {
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

/// Returns why a retiring CA stays trusted, if it must.
pub(super) fn hold(situation: &Situation<'_>, authority: &CertificateId) -> Option<Hold> {
    let timing = situation.timing;
    if situation.authorities.distrusts(authority) {
        return reload_left(situation).map(Hold::Wait);
    }
    let endpoints = &situation.observation.endpoints;
    let mut chains = endpoints.iter().flat_map(|endpoint| &endpoint.chains);
    if chains.any(|chain| situation.is_needed_for(&chain.leaf, authority)) {
        return Some(Hold::Served);
    }
    if let Some(left) = overlap_left(situation) {
        return Some(Hold::Wait(left));
    }
    let over = timing.expired_by_any_clock(situation.authorities.signatures_end(authority));
    (situation.observation.has_unobserved_servers() && situation.now() <= over)
        .then_some(Hold::Unobserved(over))
}

/// Reports whether a rotation is in progress, other than one that only waits for servers that cannot be
/// observed.
pub(super) fn is_under_way(situation: &Situation<'_>) -> bool {
    let is_blind = |authority| matches!(hold(situation, authority), Some(Hold::Unobserved(_)));
    !situation.authorities.retiring.iter().all(is_blind)
}

/// Reports whether the next rotation must wait for the previous one.
pub(super) fn is_next_rotation_held(situation: &Situation<'_>) -> bool {
    situation.authorities.retiring.len() >= MAX_RETIRING || is_under_way(situation)
}

/// Returns when to check endpoints again, for which there is no event: often while servers reload, then less
/// and less often.
pub(super) fn next_check(situation: &Situation<'_>) -> SignedDuration {
    let timing = situation.timing;
    let since = situation
        .published_at()
        .map(|at| situation.observation.clock.since(&at));
    let late = since.unwrap_or_default().saturating_sub(timing.reload);
    late.clamp(timing.poll, timing.longest_sleep.max(timing.poll))
}

/// Reports whether every endpoint serves the certificate in the Secret.
pub(super) fn is_served_everywhere(situation: &Situation<'_>) -> bool {
    let leaf = situation.leaf();
    let mut endpoints = situation.observation.endpoints.iter();
    !situation.observation.has_unobserved_servers() && endpoints.all(|endpoint| endpoint.serves(leaf))
}

/// Returns serving certificates that were published earlier and may not have expired.
pub(super) fn replaced_leaves<'a>(situation: &'a Situation<'_>) -> impl Iterator<Item = &'a CertificateId> {
    let published = situation.leaf().map(|leaf| leaf.fingerprint);
    let leaves = situation.authorities.leaves.iter();
    leaves
        .filter(move |leaf| Some(leaf.fingerprint) != published)
        .filter(|leaf| situation.now() <= situation.timing.expired_by_any_clock(leaf.validity.not_after))
}

/// Returns ready endpoints that had time to reload but serve, or may serve, a replaced certificate in the
/// last sixth of its lifetime, with that certificate: calls fail once it expires.
pub(super) fn not_reloaded<'a>(
    situation: &'a Situation<'_>,
) -> impl Iterator<Item = (&'a ObservedEndpoint, CertificateId)> {
    let is_pressing = |leaf: &CertificateId| {
        situation.timing.last_sixth(leaf) <= situation.now()
            || !situation.authorities.knows(leaf.issuer_key_id)
    };
    let soonest = replaced_leaves(situation)
        .min_by_key(|leaf| leaf.validity.not_after)
        .copied();
    let unseen = situation.observation.ready_endpoints();
    let unseen = unseen.filter(move |endpoint| may_serve_replaced(situation, endpoint));
    let unseen = unseen.filter_map(move |endpoint| Some((endpoint, soonest?)));
    let late = outdated_endpoints(situation)
        .filter(|(_, leaf)| is_signed_by_windlass(situation, leaf))
        .chain(unseen);
    late.filter(move |(_, leaf)| is_pressing(leaf) && is_overdue(situation, leaf))
}

/// Reports whether servers had time to load the successor of a serving certificate, by either clock. The time
/// starts with the first successor: neither a later publication nor a new leader restarts it.
fn is_overdue(situation: &Situation<'_>, leaf: &CertificateId) -> bool {
    let came_later = |other: &&CertificateId| other.validity.not_before > leaf.validity.not_before;
    let leaves = &situation.authorities.leaves;
    let published = situation.leaf().or(leaves.last());
    let next = leaves.iter().filter(came_later).chain(published);
    let next = next.map(|next| issued_at(situation, next)).min();
    let was_long_ago = |issued| situation.now() > timing::after(issued, situation.timing.reload);
    reload_left(situation).is_none() || next.is_some_and(was_long_ago)
}

/// Returns when a serving certificate was issued, by the wall clock.
fn issued_at(situation: &Situation<'_>, leaf: &CertificateId) -> Timestamp {
    timing::after(leaf.validity.not_before, situation.timing.tolerance())
}

/// Reports whether the endpoint may serve a replaced certificate: it could not be observed, and its pod is
/// older than the new certificate.
fn may_serve_replaced(situation: &Situation<'_>, endpoint: &ObservedEndpoint) -> bool {
    let is_new = |created: Timestamp| {
        let leaf = situation.leaf();
        leaf.is_some_and(|leaf| created > timing::after(issued_at(situation, leaf), situation.timing.reload))
    };
    endpoint.unobservable.is_some() && !endpoint.created.is_some_and(is_new)
}

/// Returns the ready endpoints that serve another certificate than the one in the Secret.
pub(super) fn outdated_endpoints<'a>(
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

/// Returns restarts of servers that do not reload their certificate, once per certificate.
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

/// Returns the workloads to restart and how long until each restart is due.
pub(super) fn restart_waits<'a>(
    situation: &'a Situation<'_>,
) -> impl Iterator<Item = (&'a ObservedWorkload, SignedDuration)> {
    let workloads = situation.observation.workloads.iter();
    workloads.filter_map(move |workload| Some((workload, restart_wait(situation, workload)?)))
}

/// Returns how long until `workload` is restarted: until its servers had time to reload if the restart costs
/// no requests or ends the use of a compromised certificate, and otherwise until the last third of the
/// lifetime of the served certificate.
fn restart_wait(situation: &Situation<'_>, workload: &ObservedWorkload) -> Option<SignedDuration> {
    let leaf = situation.leaf()?;
    if workload.restarted_for == Some(leaf.fingerprint) || workload.progressing {
        return None;
    }
    let has = |endpoint: &ObservedEndpoint| workload.pods.contains(&endpoint.name);
    // Foreign certificates are ignored: a proxy in front of the server has its own.
    let old: Vec<_> = outdated_endpoints(situation)
        .filter(|(endpoint, _)| has(endpoint))
        .map(|(_, leaf)| leaf)
        .filter(|leaf| is_signed_by_windlass(situation, leaf))
        .collect();
    let is_distrusted = |leaf: &CertificateId| situation.authorities.distrusted.contains(&leaf.issuer_key_id);
    let reload = reload_left(situation).unwrap_or_default();
    let until_last_third = |leaf: &CertificateId| {
        let last_third = situation.timing.last_third(leaf);
        reload.max(situation.now().duration_until(last_third))
    };
    let Some(seen) = old.iter().map(until_last_third).min() else {
        // An unobserved server may have reloaded, so it is restarted only if that costs no requests.
        let mut ready = situation.observation.ready_endpoints();
        let may_serve = |endpoint| has(endpoint) && may_serve_replaced(situation, endpoint);
        let is_free = !workload.costs_requests && ready.any(may_serve);
        let replaced = replaced_leaves(situation).map(|leaf| match is_distrusted(leaf) {
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

/// Reports whether a present or past CA of Windlass signed `leaf`. Of past CAs, only the last and compromised
/// ones are remembered.
fn is_signed_by_windlass(situation: &Situation<'_>, leaf: &CertificateId) -> bool {
    let authorities = &situation.authorities;
    let last = authorities.cross.map(|cross| cross.issuer_key_id);
    authorities.knows(leaf.issuer_key_id)
        || authorities.distrusted.contains(&leaf.issuer_key_id)
        || last == Some(leaf.issuer_key_id)
}

/// Reports whether the Secret was read back with a leaf of the current CA.
fn is_published(situation: &Situation<'_>) -> bool {
    let Some((leaf, current)) = situation.leaf().zip(situation.authorities.current.as_ref()) else {
        return false;
    };
    leaf.is_signed_by(&current.certificate) && situation.published_at().is_some()
}

/// Returns how long a starting pod may still mount the previous contents of the Secret.
pub(super) fn overlap_left(situation: &Situation<'_>) -> Option<SignedDuration> {
    published_wait(situation, situation.timing.overlap)
}

/// Returns how long servers still have to load the certificate in the Secret.
pub(super) fn reload_left(situation: &Situation<'_>) -> Option<SignedDuration> {
    published_wait(situation, situation.timing.reload)
}

/// Returns what is left of a wait that began when the leaf was read back.
fn published_wait(situation: &Situation<'_>, wait: SignedDuration) -> Option<SignedDuration> {
    match situation.published_at() {
        Some(published) => situation.wait_left(&published, wait),
        None => Some(wait),
    }
}
