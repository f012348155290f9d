//! Plans the steps of a rotation from an observation.

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

/// The steps to execute now, and the status to report.
#[derive(Clone, Debug, PartialEq)]
pub struct RotationPlan {
    /// The steps, each of which is safe on its own. After a change of the CA Secret, plan again immediately.
    pub steps: Vec<Step>,
    /// How far the rotation has progressed.
    pub phase: RotationPhase,
    /// After how long to plan again if the observation does not change earlier.
    pub wake_up: SignedDuration,
    /// Trusted, Served and Ready.
    pub conditions: Assessments,
    /// Whether all requests are executed, apart from servers that cannot be observed.
    pub is_complete: bool,
    /// The problems that block the rotation.
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

/// Returns the injections that are safe before endpoints were observed.
///
/// A plan would contain each of them. They can miss only a CA that is served and known from nothing but the
/// serving Secret; in that case there are none, because a plan must adopt that CA first.
pub fn repairs(observation: &Observation, timing: &Timing) -> Vec<Step> {
    let situation = Situation::new(observation, timing);
    if situation.may_have_unknown_issuers() {
        return Vec::new();
    }
    situation.injections().collect()
}

/// Reports whether a target lost the next CA after all had it; see [`Observation::regressed`].
pub fn has_regressed(observation: &Observation, timing: &Timing) -> bool {
    let situation = Situation::new(observation, timing);
    matches!(situation.authorities.trust, Trust::Known(_)) && !situation.next_is_everywhere()
}

/// Plans the next steps of a rotation.
///
/// With a [`Timing`] that has [problems](Timing::problems), nothing is issued and everything issued stays
/// trusted.
///
/// # Guarantees
///
/// `tests/exhaustive.rs` checks them.
///
/// * Each step is safe on its own, in any order, executed or not: after a crash between two writes the next plan resumes.
/// * A write of a Secret names the resourceVersion that it replaces, and a write of a target names the desired trust bundle. So a plan that
///   is older than the cluster has no effect.
/// * A change of the CA Secret is the only step of its plan. The next plan is made from the result.
/// * Trust before use: the next CA signs once every writable target was read back with it and [`Timing::trust`] has passed.
///   It signs without targets that reject writes or cannot be listed only if the serving certificate expires soon and the current CA
///   cannot sign another that lasts.
/// * Use before retire: a CA stays in the trust bundle until every endpoint serves a certificate of another CA, or until its last serving
///   certificate has expired, if endpoints are unreachable, starting or missing. Only a compromised CA is removed
///   earlier, after [`Timing::reload`].
/// * Waits use a monotonic clock ([`Mark`](super::Mark)): no jump of the wall clock shortens one.
///
/// # Assumptions
///
/// * [`Observation::targets`] and [`Observation::endpoints`] are complete: the plan does not wait for a missing target.
/// * A write of a Secret replaces the resourceVersion in the step, or fails. A write of a target fails if the target no longer has the observed
///   trust bundle.
/// * After a change of the CA Secret, further steps come from a new plan of a new observation.
/// * [`Mark::uptime`](super::Mark::uptime) never decreases within one [`Mark::run`](super::Mark::run), and each process has its own run.
/// * API servers see a target within [`Timing::trust`] after it was read back.
/// * A pod that is created [`Timing::overlap`] after a serving certificate was read back mounts that certificate.
/// * No wall clock is wrong by more than [`Timing::tolerance`], including those of API servers.
pub fn plan(observation: &Observation, timing: &Timing) -> RotationPlan {
    let situation = Situation::new(observation, timing);
    let steps = match change::due_change(&situation) {
        Some(change) => vec![Step::ChangeAuthorities {
            replacing: observation
                .authorities
                .as_ref()
                .map(|secret| secret.version.clone()),
            change,
        }],
        None => publication::due_publication(&situation)
            .into_iter()
            .chain(situation.injections())
            .chain(endpoints::restarts(&situation))
            .collect(),
    };
    report::report(&situation, steps)
}
