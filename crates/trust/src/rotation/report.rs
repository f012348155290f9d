//! What is to be said about a rotation, and when to look again.

use jiff::{SignedDuration, Timestamp};

use crate::rotation::{
    RotationPlan, blocked,
    ca_state::Trust,
    change, conditions,
    endpoint_counts::EndpointCounts,
    endpoints::{self, Hold},
    observation::is_waited_for,
    situation::{Situation, Urgency},
    step::Step,
};

/// Phase of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RotationPhase {
    /// The next CA is trusted everywhere and signs nothing yet.
    Stable,
    /// The next CA has signed; endpoints are switching to what it signed, or it cannot be seen whether all did.
    Signing,
    /// Every endpoint serves what the next CA signed; targets are being updated with the CA after it.
    Retiring,
    /// Targets are being updated with a new next CA.
    Distributing,
}

/// The plan with these steps.
pub(super) fn report(situation: &Situation<'_>, steps: Vec<Step>) -> RotationPlan {
    let blocked = blocked::blocked(situation);
    RotationPlan {
        phase: phase(situation),
        wake_up: wake_up(situation, &steps),
        conditions: conditions::conditions(situation, &blocked),
        blocked,
        leaf_renewal: situation.leaf().map(|leaf| situation.timing.leaf_renewal(leaf)),
        authority_renewal: situation.authority_renewal(),
        endpoints: EndpointCounts::of_endpoints(situation),
        targets: EndpointCounts::of_targets(situation),
        is_carried_out: is_carried_out(situation, &steps),
        steps,
    }
}

/// Whether nothing that was asked for is left to do but to wait for the end of what cannot be seen.
fn is_carried_out(situation: &Situation<'_>, steps: &[Step]) -> bool {
    let is_seen_elsewhere = || endpoints::behind(situation).next().is_some();
    let mut targets = situation.observation.targets.iter();
    let is_lacking = targets.any(|target| is_waited_for(&target.id) && !situation.is_current(target));
    let is_left_to_itself =
        |step: &Step| matches!(step, Step::InjectTarget { target, .. } if !is_waited_for(target));
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

/// The earliest moment at which the plan may be another although nothing else changed.
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
        .chain(leaf.map(|leaf| timing.last_call(leaf)))
        .chain(situation.authority_renewal())
        .map(until);

    let retiring = situation.authorities.retiring.iter();
    let look_again = endpoints::look_again(situation);
    let holds = retiring.filter_map(|authority| match endpoints::hold(situation, authority)? {
        Hold::Wait(left) => Some(left),
        Hold::Served => Some(look_again),
        Hold::Blind(over) => Some(until(over).min(look_again)),
    });
    let alarms = endpoints::replaced(situation).map(|leaf| until(timing.last_call(leaf)));
    let restarts = endpoints::restart_waits(situation).map(|(_, wait)| wait);
    let behind = endpoints::behind(situation).next().map(|_| look_again);
    let recording = change::may_record_served(situation).then(|| endpoints::overlap_left(situation));
    // As long as they have refused: who has many of them costs little.
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
