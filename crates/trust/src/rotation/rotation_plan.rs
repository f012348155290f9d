//! From an observation to the steps of a rotation.

use jiff::{SignedDuration, Timestamp};

use super::{
    assessment::Assessments,
    blocked::Blocked,
    ca_state::Trust,
    change,
    endpoint_counts::EndpointCounts,
    endpoints,
    observation::Observation,
    publication,
    report::{self, RotationPhase},
    situation::Situation,
    step::Step,
    timing::Timing,
};

/// What is to be done now, and what is to be said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct RotationPlan {
    /// Each is safe by itself. After a change of the CA Secret, plan again at once.
    pub steps: Vec<Step>,
    /// Phase of the rotation.
    pub phase: RotationPhase,
    /// After how long to plan again, if nothing that was observed changes before.
    pub wake_up: SignedDuration,
    /// Trusted, Served and Ready.
    pub conditions: Assessments,
    /// Whether every request was carried out as far as can be seen: what cannot be dialled is not waited for.
    pub is_carried_out: bool,
    /// What stands in the way, by name.
    pub blocked: Vec<Blocked>,
    /// When the serving certificate is renewed.
    pub leaf_renewal: Option<Timestamp>,
    /// When the next CA starts to sign.
    pub authority_renewal: Option<Timestamp>,
    /// How many endpoints are ready, and how many of them serve the certificate in the Secret.
    pub endpoints: EndpointCounts,
    /// How many targets there are, and how many of them carry the trust bundle.
    pub targets: EndpointCounts,
}

/// What targets may be given at once, before it is known what endpoints serve.
///
/// Each is a step that a plan would hold too, so it is as safe as that: only a CA that is served and known to nobody but
/// the serving Secret may be missing in the trust bundle, and then a plan has to adopt it first.
pub fn repairs(observation: &Observation, timing: &Timing) -> Vec<Step> {
    let situation = Situation::new(observation, timing);
    if situation.may_have_unknown_issuers() {
        return Vec::new();
    }
    situation.injections().collect()
}

/// Whether a target does not have the next CA any more, after all of them had: [`Observation::regressed`].
pub fn has_regressed(observation: &Observation, timing: &Timing) -> bool {
    let situation = Situation::new(observation, timing);
    matches!(situation.authorities.trust, Trust::Known(_)) && !situation.next_is_everywhere()
}

/// Plans the next steps of a rotation.
///
/// With a [`Timing`] that has [problems](Timing::problems) nothing is issued, and what was issued stays trusted.
///
/// # Guarantees
///
/// `tests/exhaustive.rs` checks them.
///
/// * Each step is safe by itself, in any order, done or not: a crash between any two writes resumes with the next plan.
/// * A step that writes a Secret names the resourceVersion that it replaces, and one that writes a target names what it
///   is to carry: a plan that is older than the cluster does nothing.
/// * A change of the CA Secret comes alone, and the plan after it is made from what it left.
/// * Trust before use: the next CA signs once every target of the cluster that takes writes was read back with it, and
///   [`Timing::trust`] is over. Only where the serving certificate ends soon and the current CA can sign no other that
///   lasts does it sign without those that refuse, or that cannot be listed.
/// * Use before retire: a CA stays in the trust bundle until every endpoint was seen on what another signed, or the last
///   serving certificate that it signed has ended: what cannot be dialled, starts, or is not there holds it until then.
///   Only a compromised one goes earlier, after [`Timing::reload`].
/// * Waits are measured on a steady clock ([`Mark`](super::Mark)): no jump of the calendar ends one early.
///
/// # Assumptions
///
/// * [`Observation::targets`] and [`Observation::endpoints`] are complete: a target that is left out is not waited for.
/// * A write of a Secret replaces the resourceVersion that the step names, or fails; a write of a target fails where the
///   target no longer carries what was observed.
/// * After a change of the CA Secret, the other steps come from another plan of another observation.
/// * [`Mark::uptime`](super::Mark::uptime) never goes back within one [`Mark::run`](super::Mark::run), and each process has a run of its own.
/// * API servers see a target within [`Timing::trust`] of its being read back.
/// * A pod that is created [`Timing::overlap`] after a serving certificate was read back is given that one.
/// * The calendar is not wrong by more than [`Timing::tolerance`], an API server's included.
pub fn plan(observation: &Observation, timing: &Timing) -> RotationPlan {
    let situation = Situation::new(observation, timing);
    let steps = match change::due(&situation) {
        Some(change) => vec![Step::ChangeAuthorities {
            replacing: observation
                .authorities
                .as_ref()
                .map(|secret| secret.version.clone()),
            change,
        }],
        None => publication::due(&situation)
            .into_iter()
            .chain(situation.injections())
            .chain(endpoints::restarts(&situation))
            .collect(),
    };
    report::report(&situation, steps)
}
