//! Arming what is proven.

use std::sync::Arc;

use serde_json::Value;
use windlass_api::WebhookState;
use windlass_bundle::render::Conversion;
use windlass_cluster::{
    apply::{ApplyError, FieldOwner, Outcome},
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
    traffic::{ConvertedBy, SwitchOrder, SwitchedCrd, Traffic},
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
    /// must be proven. Writes only what differs, in the order that [`SwitchOrder`] requires, unless everything is
    /// `settled`.
    pub(super) async fn arm(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        armament: &Armament<'_>,
        settled: bool,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let order = if settled {
            SwitchOrder::default()
        } else {
            self.switch_order(owner, plan, armament.traffic).await?
        };
        if !settled {
            self.release_dropped_versions(owner, plan, armament, report)
                .await?;
        }
        if order.webhooks_first {
            self.ensure_crds(owner, plan, armament, Stage::Common, report)
                .await?;
            self.gate_on_disarmed(owner, Milestone::Armed)?;
            self.arm_callers(owner, armament, report).await?;
            self.delete_dropped_callers(owner, plan).await?;
        }
        if order.webhooks_first || order.observes_webhooks {
            self.gate_on_disarmed(owner, Milestone::Armed)?;
        }
        let is_served_later = order.serves_later || order.observes_conversions;
        let stage = if is_served_later {
            Stage::Common
        } else {
            Stage::Proven
        };
        for conversion in &armament.traffic.conversions {
            self.arm_conversion(owner, plan, conversion, armament, stage, report)
                .await?;
        }
        self.ensure_crds(owner, plan, armament, stage, report).await?;
        if order.observes_conversions {
            self.gate_on_disarmed(owner, Milestone::Armed)?;
        }
        self.arm_callers(owner, armament, report).await?;
        if is_served_later {
            self.delete_dropped_callers(owner, plan).await?;
            self.gate_on_disarmed(owner, Milestone::Armed)?;
            self.ensure_crds(owner, plan, armament, Stage::Proven, report)
                .await?;
        }
        Ok(())
    }

    /// Determines the order in which the conversions and webhooks of a plan are switched, from what the API server has: a watch
    /// that lags shows webhooks that have been switched since.
    async fn switch_order(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
    ) -> Result<SwitchOrder, Halt> {
        let mut crds = Vec::new();
        for desired in plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let mut live = self.crd(&key, desired).await?;
            let converter = live.as_deref().map(|live| converter(plan, traffic, live));
            if matches!(converter, Some(ConvertedBy::Revision | ConvertedBy::Other)) {
                live = self.context.cluster.read(&key).await?.map(Arc::new);
            }
            crds.extend(live.map(|live| (live, desired)));
        }
        let crds: Vec<_> = crds
            .iter()
            .map(|(live, desired)| SwitchedCrd {
                live,
                desired,
                converter: converter(plan, traffic, live),
            })
            .collect();
        let callers = self.calling(owner, plan).await?;
        Ok(SwitchOrder::new(&crds, &callers, &traffic.callers))
    }

    /// Arms the webhook configurations and other callers.
    async fn arm_callers(
        &self,
        owner: &FieldOwner,
        armament: &Armament<'_>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let mut contested = None;
        for caller in &armament.traffic.callers {
            let armed = armament.trust_bundles.put_into(caller);
            let armed = self.context.applier.ensure_armed(&armed, caller, owner).await;
            let may_be_switched = match &armed {
                Ok(outcome) => *outcome == Outcome::Written,
                // The answer to a write may be lost.
                Err(ApplyError::Request(error)) => !error.is_rejection(),
                Err(_) => false,
            };
            if may_be_switched {
                self.note_disarmed(owner);
            }
            let is_contested = armed.map_err(refused)? == Outcome::Contested;
            if is_contested {
                report.set_webhook(caller, WebhookState::Disarmed);
                contested = contested.or_else(|| ObjectKey::from_object(caller));
            } else {
                report.set_webhook(caller, WebhookState::Armed);
            }
        }
        let Some(contested) = contested else {
            return Ok(());
        };
        let message = format!(
            "waiting to repair {contested}, which another client keeps changing: stop the field manager in the event ObjectContested"
        );
        Err(Halt::waiting(Milestone::Armed, "Arming", message))
    }

    async fn arm_conversion(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        conversion: &Conversion,
        armament: &Armament<'_>,
        stage: Stage,
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
            if let Some(key) = ObjectKey::from_object(&live)
                && self
                    .context
                    .applier
                    .release(&key, &live, names::CONVERSION)
                    .await?
            {
                self.note_disarmed(owner);
            }
        } else {
            let key = ObjectKey::from_object(&live).ok_or_else(waiting)?;
            // A watch that lags shows versions that have been served or dropped since.
            let live = self.context.cluster.read(&key).await?.ok_or_else(waiting)?;
            let body = plan
                .crd(&conversion.crd)
                .map(|desired| staged(desired, Some(&live), stage, true))
                .unwrap_or_default();
            let stanza = armament.trust_bundles.stanza(conversion);
            let switched = self
                .context
                .applier
                .switch_conversion(&live, &stanza, &body)
                .await;
            if !matches!(switched, Ok(Outcome::Unchanged)) {
                // API servers may use the previous converter for a while, also if only the answer is lost.
                self.note_disarmed(owner);
            }
            let was_armed = report.conversion(&conversion.crd) == WebhookState::Armed;
            if switched? == Outcome::Written && was_armed && report.next.is_none() {
                self.announce_overwrite(owner, &live);
            }
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

/// Returns what converts the objects of a live CRD of a plan.
fn converter(plan: &Plan, traffic: &Traffic, live: &Value) -> ConvertedBy {
    let name = object::text(live, "/metadata/name").unwrap_or_default();
    let stanza = live.pointer("/spec/conversion").unwrap_or(&Value::Null);
    let Some(planned) = traffic.conversion(name) else {
        return ConvertedBy::Unplanned;
    };
    match Conversion::from_stanza(name, stanza) {
        _ if planned.matches(stanza) => ConvertedBy::Plan,
        Some(conversion) if conversion.namespace == plan.namespace => ConvertedBy::Revision,
        _ => ConvertedBy::Other,
    }
}
