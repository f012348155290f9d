//! Giving a target back at once what somebody else took from it, whatever else is under way: a rotation dials endpoints,
//! and one that does not answer keeps it for seconds; another target is being written.

use std::{fmt, sync::Arc};

use windlass_cluster::worker::Action;
use windlass_object::ObjectKey;
use windlass_trust::{
    objects::{CertificateStore, read_target},
    rotation::{self, Step, Timing},
};

use super::{
    desired::DesiredCertificate, error::ServingCertificateError, gather::Gathered,
    reconciler::CertificateReconciler, targets::reach,
};

/// A target that may have to be repaired.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Repair {
    /// What was written.
    pub(super) target: ObjectKey,
    /// Whose trust bundle it is to carry.
    pub(super) certificate: ObjectKey,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.target, self.certificate)
    }
}

/// How many different CA bundles of targets are remembered.
const MOST_BUNDLES: usize = 100;

/// What is to be done for a repair.
struct PlannedRepair {
    desired: DesiredCertificate,
    timing: Timing,
    gathered: Gathered,
    steps: Vec<Step>,
}

// === impl CertificateReconciler ===

impl CertificateReconciler {
    /// Repairs a target if that may be done now. All else, obstacles and refusals too, is for a reconciliation to see and
    /// to say.
    pub(super) async fn repair(self: Arc<Self>, repair: Repair) -> Result<Action, ServingCertificateError> {
        let Some(mut planned) = self.plan_repair(&repair).await? else {
            return Ok(Action::AwaitChange);
        };
        let PlannedRepair {
            desired,
            timing,
            gathered,
            steps,
        } = &mut planned;
        self.execute(desired, gathered, steps, timing).await?;
        let target = gathered.observation.targets.first();
        let wait = target.and_then(|target| target.contested.as_ref()?.wait);
        Ok(wait.map_or(Action::AwaitChange, |wait| Action::Requeue(wait.unsigned_abs())))
    }

    /// Repairs a target for a leader that does not.
    pub(super) async fn stand_in(self: Arc<Self>, repair: Repair) -> Result<Action, ServingCertificateError> {
        if !self.is_repair_due(&repair).await? {
            return Ok(Action::AwaitChange);
        }
        // A watch may be late, and late by more than one rotation.
        self.secrets.forget(&repair.certificate);
        self.repair(repair).await
    }

    /// Whether a target has to be repaired, by what the Secrets said when they were read last.
    pub(super) async fn is_repair_due(&self, repair: &Repair) -> Result<bool, ServingCertificateError> {
        let planned = self.plan_repair(repair).await?;
        Ok(planned.is_some_and(|planned| !planned.steps.is_empty()))
    }

    /// What a repair of a target has to do; nothing, if the target is as it was or nothing can be said.
    async fn plan_repair(&self, repair: &Repair) -> Result<Option<PlannedRepair>, ServingCertificateError> {
        let Some(desired) = self.desired(&repair.certificate)? else {
            return Ok(None);
        };
        if self.is_intact(&desired, &repair.target) {
            return Ok(None);
        }
        let timing = desired.timing(&self.timing);
        let gathered = self.gather_target(&desired, &repair.target, &timing).await?;
        Ok(gathered.map(|gathered| PlannedRepair {
            steps: rotation::repairs(&gathered.observation, &timing),
            desired,
            timing,
            gathered,
        }))
    }

    /// Whether a target is gone, or still carries what it did: that it is to carry more by now is for a rotation to find,
    /// and nobody has to be asked.
    fn is_intact(&self, desired: &DesiredCertificate, target: &ObjectKey) -> bool {
        let Some(object) = self.context.index.find_indexed(target) else {
            return true;
        };
        if self
            .histories
            .is_as_written(&desired.key, target, object.version())
        {
            return true;
        }
        let Ok(names) = desired.names() else { return true };
        let Some(carried) = self.histories.carried(&desired.key, target) else {
            return false;
        };
        let mut bundles = self.bundles.lock();
        if bundles.bundles_read() > MOST_BUNDLES {
            *bundles = CertificateStore::default();
        }
        let reach = reach(&desired.key, Some(&desired.spec.secret_name), &names);
        let seen = read_target(target, &object.read(), &reach, &carried, &mut bundles);
        seen.is_some_and(|seen| seen.bundle == Some(carried))
    }
}
