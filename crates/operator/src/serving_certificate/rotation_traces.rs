//! Traces of the current rotations.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use parking_lot::Mutex;
use windlass_api::ServingCertificatePhase;
use windlass_cluster::{
    Clock, SystemClock,
    telemetry::traces::{PhaseTrace, SpanAttribute, TraceKey, TraceScope},
};
use windlass_object::ObjectKey;
use windlass_trust::rotation::{
    Assessment, ConditionStatus, Observation, RotationPhase, RotationPlan, Timing,
};

use super::{
    desired::DesiredCertificate, reconciler::CertificateReconciler, rotation_position::RotationPosition,
};

/// Traces of rotations. A new process starts without them and derives the same traces.
#[derive(Default)]
pub(super) struct RotationTraces(Mutex<HashMap<ObjectKey, FollowedRotation>>);

struct FollowedRotation {
    generation: u32,
    /// `None` once the rotation has ended.
    scope: Option<Arc<TraceScope>>,
}

impl RotationTraces {
    /// Returns the trace of the rotation that the last reconciliation found.
    pub(super) fn current(&self, certificate: &ObjectKey) -> Option<Arc<TraceScope>> {
        self.0.lock().get(certificate)?.scope.clone()
    }

    /// Ends the trace of a deleted ServingCertificate.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        let followed = self.0.lock().remove(certificate);
        if let Some(scope) = followed.and_then(|followed| followed.scope) {
            scope.end(Some("the ServingCertificate was deleted"));
        }
    }

    /// Updates the trace for a rotation at `position`: starts one for a new rotation, and ends it for a
    /// finished one.
    fn update(
        &self,
        certificate: &ObjectKey,
        position: &RotationPosition,
        now: Timestamp,
        begin: impl FnOnce() -> Option<Arc<TraceScope>>,
    ) -> Option<Arc<TraceScope>> {
        let is_stable = position.phase == RotationPhase::Stable;
        let mut all = self.0.lock();
        let known = all
            .get(certificate)
            .filter(|known| known.generation == position.generation);
        let is_news = known.is_none();
        let scope = match known {
            Some(known) => known.scope.clone(),
            None => begin(),
        };
        if let Some(scope) = &scope
            && (is_news || !is_stable)
        {
            for (phase, since) in position.phases(now) {
                scope.enter_at(phase, since);
            }
        }
        if let Some(scope) = &scope
            && is_stable
        {
            scope.end(None);
        }
        let scope = scope.filter(|_| !is_stable);
        let followed = FollowedRotation {
            generation: position.generation,
            scope: scope.clone(),
        };
        let before = all.insert(certificate.clone(), followed);
        if is_news && let Some(before) = before.and_then(|before| before.scope) {
            before.end(Some("superseded by the next rotation"));
        }
        scope
    }
}

impl CertificateReconciler {
    /// Returns the trace of the current rotation, if any.
    pub(super) fn trace(
        &self,
        desired: &DesiredCertificate,
        observation: &Observation,
        plan: &RotationPlan,
        timing: &Timing,
    ) -> Option<Arc<TraceScope>> {
        let traces = &self.context.traces;
        if !traces.are_on() {
            return None;
        }
        let nothing = Default::default();
        let secret = observation.authorities.as_ref();
        let authorities = secret.map_or(&nothing, |secret| &secret.content);
        let now = SystemClock.now();
        let position =
            RotationPosition::from_plan(authorities, plan.phase, &plan.steps, timing.tolerance(), now)?;
        let begin = || {
            let is_over = position.phase == RotationPhase::Stable && is_recorded_as_ended(desired, &position);
            let trace = || rotation_trace(desired, &position, now);
            (!is_over).then(|| traces.scope(trace)).flatten()
        };
        let scope = self.rotations.update(&desired.key, &position, now, begin)?;
        if let Some(Assessment { reason, message, .. }) = unmet_condition(plan) {
            scope.wait(&reason.to_string(), message);
        }
        Some(scope)
    }
}

/// Returns what a phase waits for.
fn unmet_condition(plan: &RotationPlan) -> Option<&Assessment> {
    let assessment = match plan.phase {
        RotationPhase::Stable => return None,
        RotationPhase::Signing => &plan.conditions.served,
        RotationPhase::Retiring | RotationPhase::Distributing => &plan.conditions.trusted,
    };
    (assessment.status != ConditionStatus::True).then_some(assessment)
}

/// Reports whether the status already shows the end of a rotation. The process that wrote it has ended the
/// trace.
fn is_recorded_as_ended(desired: &DesiredCertificate, position: &RotationPosition) -> bool {
    let status = &desired.status;
    let current = status.ca.as_ref().and_then(|ca| ca.current.as_ref());
    status.phase == Some(ServingCertificatePhase::Stable)
        && current.is_some_and(|current| current.generation == position.generation)
}

fn rotation_trace(desired: &DesiredCertificate, position: &RotationPosition, now: Timestamp) -> PhaseTrace {
    let generation = i64::from(position.generation);
    let key = TraceKey::new("rotation", desired.uid(), generation);
    let attributes = vec![
        SpanAttribute::new("k8s.namespace.name", desired.namespace().to_owned()),
        SpanAttribute::new("windlass.serving_certificate", desired.key.name.clone()),
        SpanAttribute::new("windlass.ca_generation", generation),
    ];
    PhaseTrace::new(key, "rotation", position.started.unwrap_or(now), attributes)
}
