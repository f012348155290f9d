//! Arming what is proven.

use serde_json::Value;
use windlass_api::WebhookState;
use windlass_cluster::{
    apply::{Applicant, Outcome},
    kinds,
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::injection;

use super::{
    halt::Halt, objects::refused, reconciler::BundleReconciler, report::InstallReport, trust::TrustBundles,
};
use crate::install::{
    plan::{Phase, Plan, Stage, waits_for_proof},
    status::Milestone,
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Whether anything waits for proof: a bundle that is not installed, a webhook configuration that is not there or
    /// differs, a conversion that is not in place or was never proven, a version that is not served or stored yet.
    pub(super) fn is_anything_unarmed(&self, owner: &Applicant, plan: &Plan, report: &InstallReport) -> bool {
        let admission = plan.phases.of(Phase::Admission).any(|configuration| {
            let live = ObjectKey::of(configuration).and_then(|key| self.context.index.find(&key));
            !live.is_some_and(|live| self.context.applier.is_applied(configuration, &live, owner))
        });
        let conversions = plan.conversions.iter().any(|conversion| {
            let live = self.crd_seen(&conversion.crd);
            let in_place = live.as_deref().and_then(|live| live.pointer("/spec/conversion"));
            report.conversion(&conversion.crd) != WebhookState::Armed
                || !in_place.is_some_and(|live| conversion.is_in(live))
        });
        let versions = plan.phases.of(Phase::Crds).any(|desired| {
            let name = object::text(desired, "/metadata/name").unwrap_or_default();
            self.crd_seen(name)
                .is_none_or(|live| waits_for_proof(desired, &live))
        });
        report.next.is_some() || admission || conversions || versions
    }

    /// Arms everything. What is in place already is not written again.
    pub(super) async fn arm(
        &self,
        owner: &Applicant,
        plan: &Plan,
        trust_bundles: &TrustBundles,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        for conversion in &plan.conversions {
            let Some(live) = self.crd_seen(&conversion.crd) else {
                let message = format!(
                    "waiting to observe the CustomResourceDefinition {}",
                    conversion.crd
                );
                return Err(Halt::waiting(Milestone::Armed, "Arming", message));
            };
            let in_place = live
                .pointer("/spec/conversion")
                .is_some_and(|live| conversion.is_in(live));
            if in_place {
                // A crash may have left the entry of an earlier change.
                if let Some(key) = ObjectKey::of(&live) {
                    self.context
                        .applier
                        .release(&key, &live, names::CONVERSION)
                        .await?;
                }
            } else {
                let stanza = trust_bundles.stanza(conversion);
                self.context.applier.set_conversion(&live, &stanza).await?;
                let was_armed = report.conversion(&conversion.crd) == WebhookState::Armed;
                if was_armed && report.next.is_none() {
                    self.announce_overwrite(owner, &live).await;
                }
                // What converted before may be asked for a while yet.
                self.note_disarmed(owner);
            }
            report.set_conversion(&conversion.crd, WebhookState::Armed);
        }
        // New versions come after the conversion that serves them.
        self.ensure_crds(owner, plan, trust_bundles, Stage::Proven, report)
            .await?;
        for configuration in plan.phases.of(Phase::Admission) {
            let armed = trust_bundles.put_into(configuration);
            let outcome = self
                .context
                .applier
                .ensure_armed(&armed, configuration, owner)
                .await
                .map_err(refused)?;
            if outcome == Outcome::Written {
                self.note_disarmed(owner);
            }
            let name = object::text(configuration, "/metadata/name").unwrap_or_default();
            report.set_webhook(name, WebhookState::Armed);
        }
        Ok(())
    }

    /// Says of a conversion that was armed and no longer was, who had changed it.
    async fn announce_overwrite(&self, owner: &Applicant, live: &Value) {
        let (Some(deployment), Some(crd)) = (
            self.context
                .index
                .find(&kinds::BUNDLE_DEPLOYMENT.object(None, &owner.bundle_deployment)),
            ObjectKey::of(live),
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
            .warn_of(&deployment, &crd, "Arm", "ConversionOverwritten", &note)
            .await;
    }
}
