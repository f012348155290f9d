//! What every chapter of an install and a removal does with objects: apply, delete and release them.

use serde_json::{Value, json};
use tracing::info;
use windlass_api::WebhookState;
use windlass_bundle::render::Conversion;
use windlass_cluster::{
    Kind,
    apply::{Applicant, ApplyError},
    endpoints, kinds,
};
use windlass_object::{ObjectKey, names, object, patch::relabelled};

use super::{halt::Halt, reconciler::BundleReconciler, report::InstallReport, trust::TrustBundles};
use crate::install::{
    plan::{Phase, Plan, Stage, staged, stops_serving},
    status::{InstallOutcome, Milestone},
};

/// The kinds that send API traffic to admission webhooks.
pub(super) const ADMISSION_KINDS: [Kind; 2] = [
    kinds::VALIDATING_WEBHOOK_CONFIGURATION,
    kinds::MUTATING_WEBHOOK_CONFIGURATION,
];

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Applies an object.
    pub(super) async fn ensure(&self, object: &Value, owner: &Applicant) -> Result<(), Halt> {
        self.context
            .applier
            .ensure(object, owner)
            .await
            .map_err(refused)?;
        Ok(())
    }

    pub(super) async fn ensure_phase(
        &self,
        owner: &Applicant,
        plan: &Plan,
        phase: Phase,
    ) -> Result<(), Halt> {
        for object in plan.phases.of(phase) {
            self.ensure(object, owner).await?;
        }
        Ok(())
    }

    /// Applies the CRDs as far as `stage` allows. One that is new and converts is born armed: nothing can be
    /// stored in it before its webhook answers.
    pub(super) async fn ensure_crds(
        &self,
        owner: &Applicant,
        plan: &Plan,
        trust_bundles: &TrustBundles,
        stage: Stage,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        for desired in plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::of(desired) else {
                continue;
            };
            let live = self.crd(&key, desired).await?;
            if live.as_deref().is_some_and(|live| stops_serving(desired, live)) {
                self.note_disarmed(owner);
            }
            let body = staged(desired, live.as_deref(), stage);
            if let Some(written) = plan.written_conversion(&key.name) {
                self.ensure_self_managed(&body, written, owner).await?;
                continue;
            }
            let Some(conversion) = plan.conversion(&key.name) else {
                self.ensure(&body, owner).await?;
                continue;
            };
            let mut armed = body.clone();
            armed["spec"]["conversion"] = trust_bundles.stanza(conversion);
            self.context
                .applier
                .ensure_armed(&armed, &body, owner)
                .await
                .map_err(refused)?;
            if live.is_none() {
                report.set_conversion(&key.name, WebhookState::Arming);
            }
        }
        Ok(())
    }

    /// Applies a CRD that is born with the conversion of its manifest; once it is there, that is its operator's.
    async fn ensure_self_managed(
        &self,
        body: &Value,
        written: &Value,
        owner: &Applicant,
    ) -> Result<(), Halt> {
        let mut born = body.clone();
        born["spec"]["conversion"] = written.clone();
        self.context
            .applier
            .ensure_armed(&born, body, owner)
            .await
            .map_err(refused)?;
        Ok(())
    }

    /// Deletes an object, if it still is the one that was seen.
    pub(super) async fn delete(&self, live: &Value) -> Result<(), Halt> {
        let Some(key) = ObjectKey::of(live) else {
            return Ok(());
        };
        if object::is_terminating(live) {
            return Ok(());
        }
        self.context
            .cluster
            .delete(&key, object::text(live, "/metadata/uid"))
            .await?;
        self.context.applier.forget(&key);
        info!(object = %key, "Deleted");
        Ok(())
    }

    /// Takes our label off and says whose it was, so that another BundleDeployment may take it over.
    pub(super) async fn release(&self, live: &Value, owner: &Applicant) -> Result<(), Halt> {
        let Some(key) = ObjectKey::of(live) else {
            return Ok(());
        };
        let patch = relabelled(
            live,
            &json!({ names::BUNDLE_DEPLOYMENT: null }),
            &json!({
                names::RELEASED_BY: owner.bundle_deployment,
                names::APPLIED_HASH: null,
                names::INJECT_CA_FROM: null,
            }),
        );
        self.context.cluster.patch(&key, &patch, names::INSTALL).await?;
        self.context.applier.forget(&key);
        info!(object = %key, "Released");
        Ok(())
    }

    /// Deletes the webhook configurations: nobody's request depends on a webhook any more.
    pub(super) async fn disarm_admission(&self, owner: &Applicant) -> Result<(), Halt> {
        for kind in ADMISSION_KINDS {
            for live in self.list_owned(owner, &kind).await? {
                self.delete(&live).await?;
            }
        }
        Ok(())
    }

    /// Whether conversions go to a Service in `namespace` that has no ready endpoints.
    pub(super) fn is_unanswered(&self, crd: &Value, namespace: &str) -> bool {
        let name = object::text(crd, "/metadata/name").unwrap_or_default();
        let stanza = crd.pointer("/spec/conversion").unwrap_or(&Value::Null);
        let Some(conversion) = Conversion::of_stanza(name, stanza) else {
            return false;
        };
        let key = kinds::SERVICE.object(Some(&conversion.namespace), &conversion.service);
        let service = self.context.index.find(&key);
        let answers = service.is_some_and(|service| {
            !endpoints::ready(&self.context.index, &service, Some(conversion.port)).is_empty()
        });
        conversion.namespace == namespace && !answers
    }

    /// Waits until every API server has heard of what was disarmed.
    pub(super) fn gate_on_disarmed(&self, owner: &Applicant, step: Milestone) -> Result<(), Halt> {
        let now = self.context.clock.now();
        let left = self
            .disarmed
            .left(&owner.bundle_deployment, now, self.timing.disarmed);
        left.map_or(Ok(()), |left| {
            let message = "waiting for API servers to observe the removed webhooks";
            let outcome = InstallOutcome::waiting(step, "Disarming", message);
            Err(Halt::Later(outcome, left))
        })
    }

    /// Notes that something was disarmed just now.
    pub(super) fn note_disarmed(&self, owner: &Applicant) {
        self.disarmed
            .note(&owner.bundle_deployment, self.context.clock.now());
    }
}

/// A foreign object is no error that goes away by trying again.
pub(super) fn refused(error: ApplyError) -> Halt {
    match error {
        ApplyError::Foreign { .. } => Halt::failed(Milestone::Installed, "ForeignObject", error.to_string()),
        ApplyError::Terminating { .. } => {
            Halt::waiting(Milestone::Installed, "ObjectTerminating", error.to_string())
        }
        ApplyError::Request(error) if error.is_invalid() => {
            Halt::failed(Milestone::Installed, "ObjectInvalid", error.to_string())
        }
        ApplyError::Request(error) if error.is_forbidden() => {
            Halt::failed(Milestone::Installed, "Forbidden", error.to_string())
        }
        error => error.into(),
    }
}
