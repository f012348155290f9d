//! Disarming what a new bundle no longer has, before the revision that serves it goes.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_cluster::{Kind, RequestError, apply::Applicant, kinds};
use windlass_crd::{is_converting, storage_version};
use windlass_object::{ObjectKey, names, object};

use super::{halt::Halt, objects::ADMISSION_KINDS, reconciler::BundleReconciler};
use crate::install::{
    plan::{Phase, Plan, Stage, calls_elsewhere, may_stop_converting, staged},
    status::Milestone,
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Disarms what the plan no longer has, and what it has at another place: no pod of the new revision need know the
    /// old one.
    pub(super) async fn disarm_dropped(&self, owner: &Applicant, plan: &Plan) -> Result<(), Halt> {
        self.disarm_dropped_admission(owner, plan).await?;
        self.disarm_dropped_crds(owner, plan).await
    }

    async fn disarm_dropped_admission(&self, owner: &Applicant, plan: &Plan) -> Result<(), Halt> {
        for kind in ADMISSION_KINDS {
            for live in self.owned(owner, &kind) {
                let Some(key) = ObjectKey::of(&live) else { continue };
                let kept = plan
                    .phases
                    .of(Phase::Admission)
                    .filter(|desired| ObjectKey::of(desired).as_ref() == Some(&key))
                    .any(|desired| !calls_elsewhere(&live, desired));
                if !kept {
                    self.delete(&live).await?;
                    self.note_disarmed(owner);
                }
            }
        }
        Ok(())
    }

    /// Ends the conversion of CRDs that the plan no longer has, and halts where it could not end, later on, for
    /// one that the plan has but converts no more.
    async fn disarm_dropped_crds(&self, owner: &Applicant, plan: &Plan) -> Result<(), Halt> {
        if plan.is_self_managed() {
            return Ok(());
        }
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            if converts(plan, &live) {
                continue;
            }
            let Some(desired) = plan.crd(name(&live)) else {
                if self.stop_converting(&live, Milestone::Accepted).await? {
                    self.note_disarmed(owner);
                }
                continue;
            };
            // It ends when versions that the plan drops are no longer served: what would be in its way then?
            if is_converting(&live) {
                let mut expected = staged(desired, Some(&live), Stage::Rollout);
                expected["status"] = live["status"].clone();
                self.gate_on_conversion(&expected, Milestone::Accepted).await?;
            }
        }
        Ok(())
    }

    /// Takes the conversion away from CRDs that the plan has, but converts no more.
    pub(super) async fn disarm_conversions(&self, owner: &Applicant, plan: &Plan) -> Result<(), Halt> {
        if plan.is_self_managed() {
            return Ok(());
        }
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            let Some(key) = ObjectKey::of(&live) else { continue };
            if converts(plan, &live) || plan.crd(name(&live)).is_none() {
                continue;
            }
            // A watch that lags shows versions that are not served any more.
            let live = if is_converting(&live) {
                self.context.cluster.read(&key).await?.map(Arc::new)
            } else {
                Some(live)
            };
            let Some(live) = live else { continue };
            if self.stop_converting(&live, Milestone::Installed).await? {
                self.note_disarmed(owner);
            }
        }
        Ok(())
    }

    /// Takes the conversion of a CRD back to None, if that loses nothing. Says whether there was one.
    pub(super) async fn stop_converting(&self, live: &Value, step: Milestone) -> Result<bool, Halt> {
        if !is_converting(live) {
            // A crash may have left the entry of an earlier change.
            if let Some(key) = ObjectKey::of(live) {
                self.context
                    .applier
                    .release(&key, live, names::CONVERSION)
                    .await?;
            }
            return Ok(false);
        }
        self.gate_on_conversion(live, step).await?;
        self.context
            .applier
            .set_conversion(live, &json!({"strategy": "None"}))
            .await?;
        Ok(true)
    }

    /// Refuses to end a conversion without which something would be lost.
    async fn gate_on_conversion(&self, live: &Value, step: Milestone) -> Result<(), Halt> {
        let has_objects = self.has_objects(live).await?;
        if !may_stop_converting(live, has_objects) {
            let name = name(live);
            let message = format!(
                "{name} serves several versions and has stored objects, which would be lost without its conversion. Delete the objects; or set served: false on all versions but the storage version and rewrite the objects in it; or keep a bundle that converts {name}"
            );
            return Err(Halt::failed(step, "ConversionInUse", message));
        }
        Ok(())
    }

    /// Whether objects of a CRD are stored. They are read in the version that they are stored in, which needs no
    /// webhook.
    async fn has_objects(&self, crd: &Value) -> Result<bool, RequestError> {
        match self.context.cluster.any(&stored_kind(crd)).await {
            // Stored, but not served: it cannot be seen, so it must be supposed.
            Err(RequestError::UnknownKind { .. }) => Ok(true),
            found => Ok(found?.is_some()),
        }
    }
}

/// The kind that a CRD defines, in the version in which its objects are stored.
pub(super) fn stored_kind(crd: &Value) -> Kind {
    Kind::of_crd(crd, storage_version(crd).unwrap_or_default())
}

/// Whether the plan converts a CRD.
fn converts(plan: &Plan, live: &Value) -> bool {
    plan.conversion(name(live)).is_some()
}

fn name(crd: &Value) -> &str {
    object::text(crd, "/metadata/name").unwrap_or_default()
}
