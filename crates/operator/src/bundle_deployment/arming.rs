//! Arming what is proven.

use serde_json::Value;
use windlass_api::WebhookState;
use windlass_bundle::render::Conversion;
use windlass_cluster::{
    apply::{FieldOwner, Outcome},
    kinds,
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::injection;

use super::{
    halt::Halt,
    objects::{Armament, refused},
    reconciler::BundleReconciler,
    report::InstallReport,
};
use crate::install::{
    plan::{Phase, Plan, Stage, staged, waits_for_proof},
    status::Milestone,
    traffic::Traffic,
};

impl BundleReconciler {
    /// Whether anything waits for proof: a bundle that is not installed, a webhook configuration or other caller that is not there or
    /// differs, a conversion that is not in place, was never proven or only with a generated object, a version that is not
    /// served or stored yet.
    pub(super) fn is_anything_unarmed(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        report: &InstallReport,
    ) -> bool {
        let callers = traffic.callers.iter().any(|caller| {
            let live = ObjectKey::from_object(caller).and_then(|key| self.context.index.find(&key));
            !live.is_some_and(|live| self.context.applier.is_applied(caller, &live, owner))
        });
        let conversions = traffic.conversions.iter().any(|conversion| {
            let live = self.crd_seen(&conversion.crd);
            let in_place = live.as_deref().and_then(|live| live.pointer("/spec/conversion"));
            report.conversion(&conversion.crd) != WebhookState::Armed
                || !in_place.is_some_and(|live| conversion.matches(live))
        });
        let versions = plan.phases.of(Phase::Crds).any(|desired| {
            let name = object::text(desired, "/metadata/name").unwrap_or_default();
            self.crd_seen(name)
                .is_none_or(|live| waits_for_proof(desired, &live))
        });
        let doubtful = self.proofs.are_doubtful(&owner.bundle_deployment);
        report.next.is_some() || callers || conversions || versions || doubtful
    }

    /// Arms all conversions and webhooks: from then on the API server calls the Services in `armament`, which
    /// must be proven. Writes only what differs.
    pub(super) async fn arm(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        armament: &Armament<'_>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        for conversion in &armament.traffic.conversions {
            self.arm_conversion(owner, plan, conversion, armament, report)
                .await?;
        }
        // New versions come with the conversion that serves them, or after it.
        self.ensure_crds(owner, plan, armament, Stage::Proven, report)
            .await?;
        for caller in &armament.traffic.callers {
            let armed = armament.trust_bundles.put_into(caller);
            let outcome = self
                .context
                .applier
                .ensure_armed(&armed, caller, owner)
                .await
                .map_err(refused)?;
            if outcome == Outcome::Written {
                self.note_disarmed(owner);
            }
            report.set_webhook(caller, WebhookState::Armed);
        }
        Ok(())
    }

    async fn arm_conversion(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        conversion: &Conversion,
        armament: &Armament<'_>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let waiting = || {
            let message = format!(
                "waiting to observe the CustomResourceDefinition {}",
                conversion.crd
            );
            Halt::waiting(Milestone::Armed, "Arming", message)
        };
        let live = self.crd_seen(&conversion.crd).ok_or_else(waiting)?;
        let in_place = live
            .pointer("/spec/conversion")
            .is_some_and(|live| conversion.matches(live));
        if in_place {
            // A crash may have left the entry of an earlier change.
            if let Some(key) = ObjectKey::from_object(&live) {
                self.context
                    .applier
                    .release(&key, &live, names::CONVERSION)
                    .await?;
            }
        } else {
            let key = ObjectKey::from_object(&live).ok_or_else(waiting)?;
            // A watch that lags shows versions that have been served or dropped since.
            let live = self.context.cluster.read(&key).await?.ok_or_else(waiting)?;
            let body = plan
                .crd(&conversion.crd)
                .map(|desired| staged(desired, Some(&live), Stage::Proven, true))
                .unwrap_or_default();
            let stanza = armament.trust_bundles.stanza(conversion);
            self.context
                .applier
                .switch_conversion(&live, &stanza, &body)
                .await?;
            let was_armed = report.conversion(&conversion.crd) == WebhookState::Armed;
            if was_armed && report.next.is_none() {
                self.announce_overwrite(owner, &live);
            }
            // What converted before may be asked for a while yet.
            self.note_disarmed(owner);
        }
        report.set_conversion(&conversion.crd, WebhookState::Armed);
        Ok(())
    }

    /// Says of a conversion that was armed and no longer was, who had changed it.
    pub(super) fn announce_overwrite(&self, owner: &FieldOwner, live: &Value) {
        let (Some(deployment), Some(crd)) = (
            self.context
                .index
                .find(&kinds::BUNDLE_DEPLOYMENT.object(None, &owner.bundle_deployment)),
            ObjectKey::from_object(live),
        ) else {
            return;
        };
        let who = injection::last_writer(live).map_or_else(
            || "an unknown field manager".to_owned(),
            |manager| format!("field manager {manager}"),
        );
        let note = format!(
            "spec.conversion of {} was changed by {who}; restored it",
            crd.name
        );
        self.context
            .events
            .warn_related(&deployment, &crd, "Arm", "ConversionOverwritten", &note);
    }
}
