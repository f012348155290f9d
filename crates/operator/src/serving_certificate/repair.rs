//! Giving a target back at once what somebody else took from it, whatever else is under way: a rotation dials endpoints,
//! and one that does not answer keeps it for seconds; another target is being written.

use std::{fmt, sync::Arc};

use windlass_cluster::worker::Action;
use windlass_object::ObjectKey;
use windlass_trust::{
    objects::{CertificateStore, read_target},
    rotation::{self, Step},
};

use super::{desired::DesiredCertificate, error::ServingCertificateError, reconciler::CertificateReconciler};

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

// === impl CertificateReconciler ===

impl CertificateReconciler {
    /// Repairs a target if that may be done now. All else, obstacles and refusals too, is for a reconciliation to see and
    /// to say.
    pub(super) async fn repair(self: Arc<Self>, repair: Repair) -> Result<Action, ServingCertificateError> {
        let Some(desired) = self.desired(&repair.certificate)? else {
            return Ok(Action::AwaitChange);
        };
        if self.is_intact(&desired, &repair.target) {
            return Ok(Action::AwaitChange);
        }
        let timing = desired.timing(&self.timing);
        let Ok(mut gathered) = self.gather_fast(&desired, &timing).await? else {
            return Ok(Action::AwaitChange);
        };
        let mut steps = rotation::repairs(&gathered.observation, &timing);
        steps.retain(|step| matches!(step, Step::InjectTarget { target, .. } if *target == repair.target));
        gathered
            .targets
            .retain(|target| ObjectKey::of(target).as_ref() == Some(&repair.target));
        self.execute(&desired, &mut gathered, &steps, &timing).await?;
        let mut targets = gathered.observation.targets.iter();
        let wait = targets
            .find(|target| target.id == repair.target)
            .and_then(|target| target.contested.as_ref()?.wait);
        Ok(wait.map_or(Action::AwaitChange, |wait| Action::Requeue(wait.unsigned_abs())))
    }

    /// Whether a target is gone, or still carries what it did: that it is to carry more by now is for a rotation to find,
    /// and nobody has to be asked.
    fn is_intact(&self, desired: &DesiredCertificate, target: &ObjectKey) -> bool {
        let (Some(object), Ok(names)) = (self.context.index.find(target), desired.names()) else {
            return true;
        };
        let Some(carried) = self.histories.carried(&desired.key, target) else {
            return false;
        };
        let seen = read_target(&object, &names, &carried, &mut CertificateStore::default());
        seen.is_some_and(|seen| seen.bundle == Some(carried))
    }
}
