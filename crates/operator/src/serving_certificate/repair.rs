//! Immediate repair of a target that another client has overwritten. It does not wait for a reconciliation,
//! which may take seconds if an endpoint does not respond, or for other targets.

use std::{fmt, sync::Arc};

use windlass_cluster::worker::Action;
use windlass_object::ObjectKey;
use windlass_trust::{
    objects::{CertificateStore, read_target},
    rotation::{self, Step, Timing},
};

use super::{
    desired::DesiredCertificate, error::ServingCertificateError, gather::Gathered,
    reconciler::CertificateReconciler, targets::scope,
};

/// A target that may need a repair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Repair {
    /// The overwritten target.
    pub(super) target: ObjectKey,
    /// The ServingCertificate whose trust bundle it should contain.
    pub(super) certificate: ObjectKey,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.target, self.certificate)
    }
}

/// Maximum number of different CA bundles that are remembered.
const MAX_BUNDLES: usize = 100;

struct PlannedRepair {
    desired: DesiredCertificate,
    timing: Timing,
    gathered: Gathered,
    steps: Vec<Step>,
}

impl CertificateReconciler {
    /// Repairs a target if this is due now. Everything else, including obstacles and refusals, is left to a
    /// reconciliation.
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

    /// Repairs a target if the leader does not.
    pub(super) async fn repair_in_standby(
        self: Arc<Self>,
        repair: Repair,
    ) -> Result<Action, ServingCertificateError> {
        if !self.is_repair_due(&repair).await? {
            return Ok(Action::AwaitChange);
        }
        // A watch may be late by more than one rotation.
        self.secrets.forget(&repair.certificate);
        self.repair(repair).await
    }

    /// Reports whether a target needs a repair, judged by the Secrets as last read.
    pub(super) async fn is_repair_due(&self, repair: &Repair) -> Result<bool, ServingCertificateError> {
        let planned = self.plan_repair(repair).await?;
        Ok(planned.is_some_and(|planned| !planned.steps.is_empty()))
    }

    /// Plans the repair of a target. Returns `None` if the target is unchanged or cannot be judged.
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

    /// Reports, without requests, whether a target does not exist or still contains its last trust bundle. A
    /// newer trust bundle is left to a reconciliation.
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
        let Some(carried) = self.histories.last_bundle(&desired.key, target) else {
            return false;
        };
        let mut bundles = self.bundles.lock();
        if bundles.parsed_bundle_count() > MAX_BUNDLES {
            *bundles = CertificateStore::default();
        }
        let scope = scope(&desired.key, Some(&desired.spec.secret_name), &names);
        let seen = read_target(target, &object.read(), &scope, &carried, &mut bundles);
        seen.is_some_and(|seen| seen.bundle == Some(carried))
    }
}
