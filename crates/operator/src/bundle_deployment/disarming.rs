//! Disarming what a new bundle no longer has, when what took its place is armed, and before the pods that serve it go.

use serde_json::{Value, json};
use windlass_api::DeletionPolicy;
use windlass_cluster::{apply::FieldOwner, kinds};
use windlass_crd::is_converting;
use windlass_object::{ObjectKey, names, object};

use super::{
    deletion::keeps,
    halt::Halt,
    objects::{Armament, CALLER_KINDS},
    reconciler::BundleReconciler,
    report::InstallReport,
};
use crate::{
    install::{
        plan::{Phase, Plan, Stage, may_stop_converting, staged},
        status::Milestone,
    },
    removal_obstacles::has_objects,
};

impl BundleReconciler {
    /// Halts where a conversion that the plan no longer has could not end later on.
    pub(super) async fn gate_on_dropped(&self, owner: &FieldOwner, plan: &Plan) -> Result<(), Halt> {
        if plan.is_self_managed() {
            return Ok(());
        }
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            if converts(plan, &live) || !is_converting(&live) {
                continue;
            }
            let mut expected = Value::clone(&live);
            // It ends when versions that the plan drops are no longer served: what would be in its way then?
            if let Some(desired) = plan.crd(name(&live)) {
                expected = staged(desired, Some(&live), Stage::Common, true);
                expected["status"] = live["status"].clone();
            }
            self.gate_on_conversion(&expected, Milestone::Accepted).await?;
        }
        Ok(())
    }

    /// Disarms what the plan no longer has: whatever took its place is armed.
    pub(super) async fn disarm_dropped(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        armament: &Armament<'_>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        self.delete_dropped_callers(owner, plan).await?;
        let mut ending = self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION);
        ending.retain(|live| !plan.is_self_managed() && !converts(plan, live) && is_converting(live));
        if ending.is_empty() {
            return Ok(());
        }
        for desired in ending.iter().filter_map(|live| plan.crd(name(live))) {
            self.ensure_crd(owner, plan, desired, armament, Stage::Common, report)
                .await?;
        }
        // A webhook that an API server still calls may ask for conversions.
        self.gate_on_disarmed(owner, Milestone::Installed)?;
        for live in ending {
            if let Some(desired) = plan.crd(name(&live)) {
                self.release_managers(owner, desired, &live, Milestone::Installed)
                    .await?;
            }
            self.end_conversion(owner, plan, &live).await?;
        }
        Ok(())
    }

    /// Deletes the webhook configurations, ExtensionConfigs and APIServices that the plan no longer has.
    pub(super) async fn delete_dropped_callers(&self, owner: &FieldOwner, plan: &Plan) -> Result<(), Halt> {
        let kept: Vec<_> = plan
            .phases
            .of(Phase::Callers)
            .filter_map(ObjectKey::from_object)
            .collect();
        let mut dropped: Vec<_> = CALLER_KINDS
            .iter()
            .flat_map(|kind| self.owned(owner, kind))
            .collect();
        dropped.retain(|live| ObjectKey::from_object(live).is_some_and(|key| !keeps(&kept, &key)));
        if dropped.is_empty() {
            return Ok(());
        }
        // What took their place is to be observed first; they themselves do not wait for each other.
        self.gate_on_disarmed(owner, Milestone::Armed)?;
        for live in dropped {
            let deleted = self.delete(&live, owner).await;
            // Also one that may have been deleted, for all that is known.
            self.note_disarmed(owner);
            deleted?;
        }
        Ok(())
    }

    /// Ends the conversion of a CRD that the plan does not convert.
    async fn end_conversion(&self, owner: &FieldOwner, plan: &Plan, live: &Value) -> Result<(), Halt> {
        // A watch that lags shows versions that are not served any more.
        let Some(key) = ObjectKey::from_object(live) else {
            return Ok(());
        };
        let Some(live) = self.context.cluster.read(&key).await? else {
            return Ok(());
        };
        let ended = match plan.crd(name(&live)) {
            Some(_) => self.stop_converting(&live, Milestone::Installed).await,
            None => {
                self.leave_crd(&live, DeletionPolicy::KeepCRDs, Milestone::Installed)
                    .await
            }
        };
        let may_have_ended = match &ended {
            Ok(ended) => *ended,
            // The answer to a write may be lost.
            Err(Halt::Error(_)) => true,
            Err(_) => false,
        };
        if may_have_ended {
            self.note_disarmed(owner);
        }
        ended.map(drop)
    }

    /// Takes the conversion of a CRD back to None, if that loses nothing. Reports whether it ended only now.
    pub(super) async fn stop_converting(&self, live: &Value, step: Milestone) -> Result<bool, Halt> {
        if !is_converting(live) {
            let Some(key) = ObjectKey::from_object(live) else {
                return Ok(false);
            };
            // A crash may have left the entry of an earlier change.
            let applier = &self.context.applier;
            return Ok(applier.release(&key, live, names::CONVERSION).await?);
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
        let has_objects = has_objects(&self.context.cluster, live).await?;
        if !may_stop_converting(live, has_objects) {
            return Err(conversion_in_use(name(live), step));
        }
        Ok(())
    }
}

/// Something is stored that would be lost without its conversion.
pub(super) fn conversion_in_use(name: &str, step: Milestone) -> Halt {
    let message = format!(
        "{name} serves several versions and has stored objects, which would be lost without its conversion. Delete the objects; or set served: false on all versions but the storage version and rewrite the objects in it; or keep a bundle that converts {name}"
    );
    Halt::failed(step, "ConversionInUse", message)
}

/// Whether the plan converts a CRD.
fn converts(plan: &Plan, live: &Value) -> bool {
    plan.conversion(name(live)).is_some()
}

fn name(crd: &Value) -> &str {
    object::text(crd, "/metadata/name").unwrap_or_default()
}
