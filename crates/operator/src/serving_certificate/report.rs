//! Reports the result of a reconciliation as status and events.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use windlass_api::{
    CaStatus, ContestedTarget, EndpointsStatus, FailingTarget, Generation, ServingCertificatePhase,
    ServingCertificateStatus, TargetsStatus,
};
use windlass_object::{ObjectKey, names};
use windlass_trust::rotation::{
    self, Blocked, Ca, CaChange, ConditionStatus, Leaf, Observation, Reason, RepairLimiter, RotationPlan,
    Step,
};

use super::{
    clock_condition::{self, CLOCK_SYNCHRONIZED},
    desired::DesiredCertificate,
    error::ServingCertificateError,
    obstacle::{ObservationObstacle, READY, SERVED, TRUSTED},
    reconciler::CertificateReconciler,
};
use crate::{
    announced::merge_patch,
    install::status::{ConditionUpdate, Conditions},
};

/// Maximum length of each list of targets in a status.
const MAX_LISTED: usize = 20;

impl CertificateReconciler {
    /// Writes the status of a planned rotation.
    pub(super) async fn report(
        &self,
        desired: &DesiredCertificate,
        observation: &Observation,
        plan: &RotationPlan,
    ) -> Result<(), ServingCertificateError> {
        let serving = observation.serving.as_ref();
        let leaf = serving.and_then(|secret| secret.content.leaf);
        let mut status = ServingCertificateStatus {
            observed_generation: desired.generation(),
            operator_namespace: Some(self.context.namespace.clone()),
            phase: Some(phase(plan.phase)),
            not_after: leaf.map(|leaf| time(leaf.validity.not_after)),
            renewal_time: plan.leaf_renewal.map(time),
            ca: ca(observation, plan),
            endpoints: Some(EndpointsStatus {
                ready: count(plan.endpoints.total),
                current: count(plan.endpoints.current),
            }),
            targets: Some(targets(plan)),
            rotated: rotated(observation, plan).or_else(|| desired.status.rotated.clone()),
            conditions: self.without_old_conflicts(desired),
        };
        let rotation::Assessments {
            trusted,
            served,
            ready,
        } = &plan.conditions;
        for (condition_type, verdict) in [(READY, ready), (TRUSTED, trusted), (SERVED, served)] {
            let reason = verdict.reason.to_string();
            let verdict = match verdict.status {
                ConditionStatus::True => ConditionUpdate::holds(reason, &verdict.message),
                ConditionStatus::False => ConditionUpdate::fails(reason, &verdict.message),
                ConditionStatus::Unknown => ConditionUpdate::unknown(reason, &verdict.message),
            };
            self.record(&mut status.conditions, condition_type, verdict, desired);
        }
        self.record_failure(&mut status.conditions, failure(ready), desired);
        self.record_clock(&mut status.conditions, desired);
        self.write_status(desired, &status).await
    }

    /// Writes the status for an obstacle. The counts of endpoints and targets stay.
    pub(super) async fn report_obstacle(
        &self,
        desired: &DesiredCertificate,
        obstacle: &ObservationObstacle,
    ) -> Result<(), ServingCertificateError> {
        let known = &desired.status;
        let mut status = ServingCertificateStatus {
            observed_generation: obstacle.observed_generation(desired.generation(), known),
            ..known.clone()
        };
        let verdicts = obstacle.conditions(&status.conditions);
        let is_known = verdicts.iter().any(|(condition_type, _)| {
            let known = status.conditions.find(condition_type);
            known.is_some_and(|known| known.reason == obstacle.reason)
        });
        let is_told = verdicts
            .iter()
            .any(|(condition_type, _)| *condition_type == READY);
        // A change of Ready already gets an event when its status is written.
        if !is_told && !is_known {
            let events = &self.context.events;
            events.warn(&desired.object, "Rotate", obstacle.reason, &obstacle.message);
        }
        for (condition_type, verdict) in verdicts {
            self.record(&mut status.conditions, condition_type, verdict, desired);
        }
        if obstacle.condition == READY {
            self.record_failure(&mut status.conditions, obstacle.failure(), desired);
        }
        self.record_clock(&mut status.conditions, desired);
        self.write_status(desired, &status).await
    }

    /// Publishes an event for a step that users care about.
    pub(super) fn announce_step(&self, desired: &DesiredCertificate, step: &Step) {
        let (action, reason, is_warning) = match step {
            Step::ChangeAuthorities { change, .. } => match change {
                CaChange::RecordPublished { .. } | CaChange::RecordServed(_) | CaChange::RecordTrust(_) => {
                    return;
                }
                CaChange::StartRotation { distrusted, .. } => {
                    ("Rotate", "RotationStarted", !distrusted.is_empty())
                }
                CaChange::Create { .. } | CaChange::IssueNext(_) => ("Rotate", "CACreated", false),
                CaChange::Adopt { .. } => ("Rotate", "AuthorityTrusted", false),
                CaChange::Promote { .. } => ("Rotate", "AuthorityPromoted", false),
                CaChange::Retire { .. } => ("Rotate", "AuthorityRetired", false),
            },
            Step::PublishServing(publication) if publication.leaf == Leaf::Keep => return,
            Step::PublishServing(_) => ("Issue", "CertificateIssued", false),
            Step::InjectTarget { .. } => return,
            Step::RestartRollout { .. } => ("Restart", "RolloutRestarted", false),
        };
        let events = &self.context.events;
        if is_warning {
            events.warn(&desired.object, action, reason, &step.to_string());
        } else {
            events.note(&desired.object, action, reason, &step.to_string());
        }
    }

    /// Counts a repair, and now and then publishes an event that names the client whose write was repaired.
    pub(super) fn announce_repair(
        &self,
        desired: &DesiredCertificate,
        target: &ObjectKey,
        limiter: &RepairLimiter,
    ) {
        self.context.metrics.record_repair(target);
        if !limiter.is_notable() {
            return;
        }
        let note = format!("{target}: {limiter}");
        tracing::warn!(certificate = %desired.key, "{note}");
        let events = &self.context.events;
        events.warn_related(&desired.object, target, "Inject", "TargetContested", &note);
    }

    fn record_clock(&self, conditions: &mut Vec<Condition>, desired: &DesiredCertificate) {
        if let Some(verdict) = clock_condition::assess(self.context.clock.ahead(), conditions) {
            self.record(conditions, CLOCK_SYNCHRONIZED, verdict, desired);
        }
    }

    fn record(
        &self,
        conditions: &mut Vec<Condition>,
        condition_type: &str,
        verdict: ConditionUpdate,
        desired: &DesiredCertificate,
    ) {
        conditions.record(
            condition_type,
            verdict,
            desired.generation(),
            self.context.clock.now(),
        );
    }

    fn record_failure(
        &self,
        conditions: &mut Vec<Condition>,
        failure: Option<ConditionUpdate>,
        desired: &DesiredCertificate,
    ) {
        conditions.record_failure(failure, desired.generation(), self.context.clock.now());
    }

    async fn write_status(
        &self,
        desired: &DesiredCertificate,
        status: &ServingCertificateStatus,
    ) -> Result<(), ServingCertificateError> {
        let known = &desired.status;
        if status == known {
            return Ok(());
        }
        let patch = merge_patch(known, status).map_err(ServingCertificateError::Encode)?;
        let written = self
            .context
            .cluster
            .patch_status(&desired.key, &patch, names::STATUS)
            .await;
        match written {
            Ok(_) => {}
            // The ServingCertificate was deleted in the meantime.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        self.announce(desired, status);
        Ok(())
    }

    /// Publishes an event if Ready has become `True`, or `False` for a new reason.
    fn announce(&self, desired: &DesiredCertificate, status: &ServingCertificateStatus) {
        let Some(condition) = status.conditions.find(READY) else {
            return;
        };
        let before = desired.status.conditions.find(READY);
        let holds = condition.status == "True";
        if !self
            .announced
            .is_news(&desired.key, reason(condition), before.map(reason))
        {
            return;
        }
        let (reason, message) = (&condition.reason, &condition.message);
        // Not a warning: a certificate is created before the pods that mount it.
        let is_new = before.is_none() && *reason == Reason::NoReadyEndpoints.to_string();
        tracing::info!(certificate = %desired.key, ready = holds, reason, message, "Ready condition changed");
        let events = &self.context.events;
        if holds {
            events.note(&desired.object, "Rotate", READY, message);
        } else if is_new {
            events.note(&desired.object, "Rotate", reason, message);
        } else {
            events.warn(&desired.object, "Rotate", reason, message);
        }
    }
}

/// Returns why a certificate is not ready until a user acts, for the condition Stalled.
fn failure(ready: &rotation::Assessment) -> Option<ConditionUpdate> {
    (ready.reason == Reason::InvalidDurations)
        .then(|| ConditionUpdate::holds(ready.reason.to_string(), &ready.message))
}

/// Returns the reason of a condition, which is always the same for `True`.
fn reason(condition: &Condition) -> &str {
    match &*condition.status {
        "True" => READY,
        _ => &condition.reason,
    }
}

fn phase(phase: rotation::RotationPhase) -> ServingCertificatePhase {
    match phase {
        rotation::RotationPhase::Stable => ServingCertificatePhase::Stable,
        rotation::RotationPhase::Signing => ServingCertificatePhase::Signing,
        rotation::RotationPhase::Retiring => ServingCertificatePhase::Retiring,
        rotation::RotationPhase::Distributing => ServingCertificatePhase::Distributing,
    }
}

fn ca(observation: &Observation, plan: &RotationPlan) -> Option<CaStatus> {
    let authorities = &observation.authorities.as_ref()?.content;
    let generation = |authority: &Ca| Generation {
        generation: authority.generation,
        not_after: time(authority.certificate.validity.not_after),
    };
    Some(CaStatus {
        current: authorities.current.as_ref().map(generation),
        next: authorities.next.as_ref().map(generation),
        renewal_time: plan.authority_renewal.map(time),
    })
}

fn targets(plan: &RotationPlan) -> TargetsStatus {
    let failing = plan.blocked.iter().filter_map(|blocked| match blocked {
        Blocked::Target { target, message } => Some(FailingTarget {
            kind: target.kind.clone(),
            name: target.name.clone(),
            message: message.clone(),
        }),
        _ => None,
    });
    let contested = plan.blocked.iter().filter_map(|blocked| match blocked {
        Blocked::Contested { target, contested } => Some(ContestedTarget {
            kind: target.kind.clone(),
            name: target.name.clone(),
            field_manager: contested.by.clone(),
            repairs: contested.repairs,
        }),
        _ => None,
    });
    TargetsStatus {
        total: count(plan.targets.total),
        current: count(plan.targets.current),
        failing: failing.take(MAX_LISTED).collect(),
        contested: contested.take(MAX_LISTED).collect(),
    }
}

/// Returns the last handled rotation request, if it is completely carried out.
fn rotated(observation: &Observation, plan: &RotationPlan) -> Option<String> {
    let authorities = &observation.authorities.as_ref()?.content;
    let leaf = observation.serving.as_ref()?.content.leaf?;
    let current = authorities.current.as_ref()?.certificate;
    let is_replaced = !authorities.replace.contains(&leaf.fingerprint)
        && !authorities.replace.contains(&current.fingerprint)
        && !authorities.distrusted.contains(&current.key_id);
    (is_replaced && plan.is_complete)
        .then(|| authorities.request.clone())
        .flatten()
}

/// Converts to whole seconds, as the API server stores them.
fn time(moment: Timestamp) -> Time {
    Time(Timestamp::from_second(moment.as_second()).unwrap_or(moment))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
