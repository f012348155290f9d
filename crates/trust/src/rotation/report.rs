//! The status of a rotation, and when to plan again.

use jiff::{SignedDuration, Timestamp};

use crate::rotation::{
    RotationPlan, blocked,
    ca_state::Trust,
    change, conditions,
    endpoint_counts::EndpointCounts,
    endpoints::{self, Hold},
    observation::blocks_rotation,
    situation::{Situation, Urgency},
    step::Step,
};

/// How far a rotation has progressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RotationPhase {
    /// The next CA is trusted everywhere and has signed nothing yet.
    Stable,
    /// The next CA has signed; endpoints are switching to its certificates, or this cannot be observed for
    /// all.
    Signing,
    /// Every endpoint serves a certificate of the new CA; targets are being updated with the CA after it.
    Retiring,
    /// Targets are being updated with a new next CA.
    Distributing,
}

/// Returns the plan with these steps.
pub(super) fn report(situation: &Situation<'_>, steps: Vec<Step>) -> RotationPlan {
    let blocked = blocked::blocked(situation);
    RotationPlan {
        phase: phase(situation),
        wake_up: wake_up(situation, &steps),
        conditions: conditions::conditions(situation, &blocked),
        blocked,
        leaf_renewal: situation.leaf().map(|leaf| situation.timing.leaf_renewal(leaf)),
        authority_renewal: situation.authority_renewal(),
        endpoints: EndpointCounts::from_endpoints(situation),
        targets: EndpointCounts::from_targets(situation),
        is_complete: is_complete(situation, &steps),
        steps,
    }
}

/// Reports whether all requests are executed, apart from servers that cannot be observed.
fn is_complete(situation: &Situation<'_>, steps: &[Step]) -> bool {
    let is_seen_elsewhere = || endpoints::outdated_endpoints(situation).next().is_some();
    let mut targets = situation.observation.targets.iter();
    let is_lacking = targets.any(|target| blocks_rotation(&target.id) && !situation.is_current(target));
    let is_left_to_itself =
        |step: &Step| matches!(step, Step::InjectTarget { target, .. } if !blocks_rotation(target));
    let authorities = &situation.authorities;
    let has_signed = authorities.retiring.is_empty() || !endpoints::is_under_way(situation);
    let is_known = !authorities.retiring.is_empty()
        || (authorities.next.is_some() && matches!(authorities.trust, Trust::Known(_)));
    steps.iter().all(is_left_to_itself)
        && !change::may_record_served(situation)
        && situation.urgency() == Urgency::NotDue
        && has_signed
        && is_known
        && !is_lacking
        && !is_seen_elsewhere()
}

fn phase(situation: &Situation<'_>) -> RotationPhase {
    let authorities = &situation.authorities;
    let knows_next = matches!(authorities.trust, Trust::Known(_));
    let is_pressing = situation.urgency() >= Urgency::Needed;
    let can_hand_over = situation.usable_next().is_some() && situation.next_is_trusted();
    if authorities.current.is_none() || (is_pressing && !can_hand_over) {
        return RotationPhase::Distributing;
    }
    if !authorities.retiring.is_empty() {
        return RotationPhase::Signing;
    }
    match authorities.trust {
        _ if knows_next && authorities.next.is_some() => RotationPhase::Stable,
        Trust::Retiring => RotationPhase::Retiring,
        _ => RotationPhase::Distributing,
    }
}

/// Returns the earliest time at which the plan may differ although nothing else changed.
fn wake_up(situation: &Situation<'_>, steps: &[Step]) -> SignedDuration {
    let timing = situation.timing;
    if steps
        .iter()
        .any(|step| matches!(step, Step::ChangeAuthorities { .. }))
    {
        return SignedDuration::ZERO;
    }
    let now = situation.now();
    let until = |moment: Timestamp| now.duration_until(moment);
    let leaf = situation.leaf();
    let moments = leaf
        .map(|leaf| timing.leaf_renewal(leaf))
        .into_iter()
        .chain(leaf.map(|leaf| timing.last_sixth(leaf)))
        .chain(situation.authority_renewal())
        .map(until);

    let retiring = situation.authorities.retiring.iter();
    let look_again = endpoints::next_check(situation);
    let holds = retiring.filter_map(|authority| match endpoints::hold(situation, authority)? {
        Hold::Wait(left) => Some(left),
        Hold::Served => Some(look_again),
        Hold::Unobserved(over) => Some(until(over).min(look_again)),
    });
    let alarms = endpoints::replaced_leaves(situation).map(|leaf| until(timing.last_sixth(leaf)));
    let restarts = endpoints::restart_waits(situation).map(|(_, wait)| wait);
    let behind = endpoints::outdated_endpoints(situation)
        .next()
        .map(|_| look_again);
    let recording = change::may_record_served(situation).then(|| endpoints::overlap_left(situation));
    // The retry delay grows with the time of rejection, so many rejecting targets cost little.
    let refused_for = situation.observation.refused_for;
    let retry = refused_for.unwrap_or_default().max(timing.retry);
    let refusing = situation.refusing_targets().next().map(|_| retry);
    let targets = situation.observation.targets.iter();
    let contested = targets.filter_map(|target| target.contested.as_ref()?.wait);
    let written = (!steps.is_empty() && refusing.is_none()).then_some(timing.poll);
    moments
        .chain(situation.trust_wait())
        .chain(contested)
        .chain(holds)
        .chain(restarts)
        .chain(behind)
        .chain(alarms)
        .chain(recording.flatten())
        .chain(refusing)
        .chain(written)
        .filter(SignedDuration::is_positive)
        .fold(timing.longest_sleep, SignedDuration::min)
}
