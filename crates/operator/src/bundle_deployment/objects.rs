//! What every chapter of an install and a removal does with objects: apply, delete and release them.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use serde_json::{Value, json};
use tracing::info;
use windlass_api::WebhookState;
use windlass_bundle::render::Conversion;
use windlass_cluster::{
    Cluster, Kind,
    apply::{ApplyError, FieldOwner, Outcome},
    endpoints, kinds,
};
use windlass_crd::{grant::ObjectWork, is_converting};
use windlass_object::{ObjectKey, json, names, object, patch::relabelled};
use windlass_trust::injection;

use super::{
    halt::{Halt, LAG},
    reconciler::BundleReconciler,
    report::InstallReport,
    tenancy::deletes_as,
    trust::TrustBundles,
};
use crate::install::{
    plan::{Phase, Plan, Stage, staged, stops_serving},
    status::{InstallOutcome, Milestone},
    traffic::{Traffic, admit_new_pods, asks_for_conversion, transitional},
};

/// What callers are armed with.
#[derive(Clone, Copy)]
pub(super) struct Armament<'a> {
    /// Whom they call.
    pub(super) traffic: &'a Traffic,
    /// Whom they trust.
    pub(super) trust_bundles: &'a TrustBundles,
}

const NETWORK_POLICY: Kind = Kind::new("networking.k8s.io/v1", "NetworkPolicy");

/// The kinds that send traffic to what a bundle serves, beside CRDs, in each version that may be watched.
pub(super) static CALLER_KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kinds = injection::KINDS.iter().flat_map(Kind::versions_of);
    kinds
        .filter(|kind| Phase::for_kind(&kind.kind) == Phase::Callers)
        .collect()
});

impl BundleReconciler {
    /// Applies an object. One that somebody deleted so that the API server takes another revision does not come back before that
    /// is tried.
    pub(super) async fn ensure(&self, object: &Value, owner: &FieldOwner) -> Result<(), Halt> {
        let applier = &self.context.applier;
        let name = &owner.bundle_deployment;
        let Some(key) = ObjectKey::from_object(object).filter(|key| self.dry_runs.is_refused_over(name, key))
        else {
            let ensured = applier.ensure(object, owner).await;
            return ensured
                .map(drop)
                .or_else(|error| self.leave(object, owner, error));
        };
        match applier.ensure_existing(object, owner).await {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(()),
            Err(error) => return self.leave(object, owner, error),
        }
        // As long as a watch shows it, what was refused is not tried again.
        if self.context.index.find(&key).is_none() {
            self.dry_runs.hears_of_deletion(name, &key);
        }
        let message = format!("retrying after {key} was deleted");
        let outcome = InstallOutcome::waiting(Milestone::Installed, "Retrying", message);
        Err(Halt::Later(outcome, LAG))
    }

    /// Decides what happens to an object that was not applied because the fields to keep are unknown: it
    /// stays unchanged, with a notice, if it was applied before with this content, or if a webhook interprets
    /// it that this bundle serves. Any other error halts the install.
    fn leave(&self, object: &Value, owner: &FieldOwner, error: ApplyError) -> Result<(), Halt> {
        let key = ObjectKey::from_object(object).filter(|_| matches!(error, ApplyError::Retention { .. }));
        let seen = key.as_ref().and_then(|key| self.context.index.find(key));
        let was_applied = seen.is_some_and(|seen| self.context.applier.was_applied(object, &seen, owner));
        let name = &owner.bundle_deployment;
        match key {
            Some(key) if was_applied || self.context.interpretation.can_stay_unchanged(name, object) => {
                self.unretained.note(name, key, error.to_string());
                Ok(())
            }
            _ => Err(refused(error)),
        }
    }

    /// Applies the objects of a phase, but for Services that webhooks may call. `in_transition`: pods of another revision may be
    /// called.
    pub(super) async fn ensure_phase(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        phase: Phase,
        in_transition: bool,
    ) -> Result<(), Halt> {
        for object in plan.phases.of(phase).filter(|object| !plan.is_called(object)) {
            let Some(key) = ObjectKey::from_object(object).filter(|_| in_transition) else {
                self.ensure(object, owner).await?;
                continue;
            };
            let live = self.live(&key).await?;
            let was_applied = live
                .as_deref()
                .is_some_and(|live| self.context.applier.was_applied(object, live, owner));
            if was_applied {
                self.ensure(object, owner).await?;
            } else if let Some(body) = transitional(object, live.as_deref()) {
                self.ensure(&body, owner).await?;
            }
        }
        Ok(())
    }

    /// Creates those of the Services that webhooks are to call that are not there.
    pub(super) async fn create_services(&self, owner: &FieldOwner, services: &[Value]) -> Result<(), Halt> {
        for service in services {
            let Some(key) = ObjectKey::from_object(service) else {
                continue;
            };
            if self.live(&key).await?.is_none() {
                self.ensure(service, owner).await?;
            }
        }
        Ok(())
    }

    /// Applies Services that webhooks call or are about to. One that leads elsewhere is changed only if nobody calls it, and every
    /// API server has observed that. Unless everything is `settled`, a watch that lags is not believed: it may show that a
    /// Service leads to the new pods which does so no more.
    pub(super) async fn ensure_services(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        services: &[Value],
        settled: bool,
    ) -> Result<(), Halt> {
        for service in services {
            let Some(key) = ObjectKey::from_object(service) else {
                continue;
            };
            let live = match self.context.index.find(&key).filter(|_| settled) {
                Some(seen) => Some(seen),
                None => self.context.cluster.read(&key).await?.map(Arc::new),
            };
            let leads_elsewhere =
                live.is_some() && !self.leads_as_desired(owner, plan, service, live.as_deref());
            if !leads_elsewhere {
                self.ensure(service, owner).await?;
                continue;
            }
            self.gate_on_disarmed(owner, Milestone::Armed)?;
            if self.is_called(owner, plan, service).await? {
                let message = format!("waiting until webhooks no longer call {key}, before it is changed");
                return Err(Halt::waiting(Milestone::Installed, "ServiceInUse", message));
            }
            let applied = self.context.applier.ensure(service, owner).await;
            if applied.map_err(refused)? == Outcome::Unchanged {
                let message = format!("waiting to observe {key}");
                return Err(Halt::waiting(Milestone::Installed, "Applying", message));
            }
        }
        Ok(())
    }

    /// Lets the pods of a new revision be reached, whatever NetworkPolicies of the revision before say.
    pub(super) async fn ensure_admission_of_new_pods(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
    ) -> Result<(), Halt> {
        let policies: Vec<_> = plan
            .phases
            .of(Phase::Configuration)
            .filter(|object| object::text(object, "/kind") == Some("NetworkPolicy"))
            .collect();
        let otherwise = "one of them may block calls of the new pods";
        self.gate_on_listed(&[NETWORK_POLICY], otherwise, Milestone::Installed)?;
        let live = self.owned(owner, &NETWORK_POLICY);
        for deployment in plan
            .phases
            .of(Phase::Deployments)
            .filter(|object| plan.is_serving(object))
        {
            if let Some(policy) = admit_new_pods(deployment, &policies, live.iter().map(AsRef::as_ref)) {
                self.ensure(&policy, owner).await?;
            }
        }
        Ok(())
    }

    /// Applies the CRDs as far as `stage` allows. One that is new and converts is born armed: nothing can be
    /// stored in it before its webhook answers.
    pub(super) async fn ensure_crds(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        armament: &Armament<'_>,
        stage: Stage,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        for desired in plan.phases.of(Phase::Crds) {
            self.ensure_crd(owner, plan, desired, armament, stage, report)
                .await?;
        }
        Ok(())
    }

    /// Applies one CRD as [`BundleReconciler::ensure_crds`] does.
    pub(super) async fn ensure_crd(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        desired: &Value,
        armament: &Armament<'_>,
        stage: Stage,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let Some(key) = ObjectKey::from_object(desired) else {
            return Ok(());
        };
        let live = self.crd(&key, desired).await?;
        let conversion = armament.traffic.conversion(&key.name);
        let is_converting = live.as_deref().is_some_and(is_converting);
        let ends = conversion.is_none() && is_converting && !plan.is_self_managed();
        // What it no longer converts is served only when the conversion has ended.
        let stage = if ends && stage > Stage::Common {
            return Ok(());
        } else {
            stage
        };
        let stops =
            stage != Stage::Rollout && live.as_deref().is_some_and(|live| stops_serving(desired, live));
        let converts = conversion.is_some() || is_converting;
        let mut body = staged(desired, live.as_deref(), stage, converts);
        if let Some(live) = live.as_deref().filter(|_| stage == Stage::Rollout) {
            keep_ca_source(&mut body, live);
        }
        if let Some(written) = plan.written_conversion(&key.name) {
            return self.ensure_self_managed(&body, written, owner).await;
        }
        let applied = match conversion {
            None => self.ensure(&body, owner).await,
            Some(conversion) => {
                let mut armed = body.clone();
                armed["spec"]["conversion"] = armament.trust_bundles.stanza(conversion);
                let applied = self.context.applier.ensure_armed(&armed, &body, owner).await;
                applied.map(drop).map_err(refused)
            }
        };
        if stops {
            // Also if the answer is lost.
            self.note_disarmed(owner);
        }
        applied?;
        if conversion.is_some() && live.is_none() {
            report.set_conversion(&key.name, WebhookState::Arming);
        }
        Ok(())
    }

    /// Applies a CRD that is born with the conversion of its manifest; once it is there, that is its operator's.
    async fn ensure_self_managed(
        &self,
        body: &Value,
        written: &Value,
        owner: &FieldOwner,
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

    /// Grants the operator itself the right to do `work` with the objects of `crd`. What installs or removes the bundle takes it
    /// away again, as what the bundle does not have.
    pub(super) async fn grant(&self, owner: &FieldOwner, crd: &Value, work: ObjectWork) -> Result<(), Halt> {
        for object in work.grant(crd, self.context.cluster.user().await?) {
            self.ensure(&object, owner).await?;
        }
        Ok(())
    }

    /// Deletes an object of a bundle, if it still is the one that was seen.
    pub(super) async fn delete(&self, live: &Value, owner: &FieldOwner) -> Result<(), Halt> {
        let account = ObjectKey::from_object(live).and_then(|key| deletes_as(owner, &Kind::from_key(&key)));
        self.delete_through(&self.context.cluster.impersonating(account), live)
            .await
    }

    /// Deletes an object that Windlass made for itself, if it still is the one that was seen.
    pub(super) async fn delete_own(&self, live: &Value) -> Result<(), Halt> {
        self.delete_through(&self.context.cluster, live).await
    }

    async fn delete_through(&self, cluster: &Cluster, live: &Value) -> Result<(), Halt> {
        let Some(key) = ObjectKey::from_object(live) else {
            return Ok(());
        };
        if object::is_terminating(live) {
            return Ok(());
        }
        let uid = object::text(live, "/metadata/uid");
        if Kind::from_key(&key) == kinds::DEPLOYMENT {
            // Pods that still end need what they may do, and what they mount.
            cluster.delete_after_dependents(&key, uid).await?;
        } else {
            cluster.delete(&key, uid).await?;
        }
        self.context.applier.forget(&key);
        info!(object = %key, "Deleted");
        Ok(())
    }

    /// Takes our label off and says whose it was, so that another BundleDeployment may take it over.
    pub(super) async fn release(&self, live: &Value, owner: &FieldOwner) -> Result<(), Halt> {
        let Some(key) = ObjectKey::from_object(live) else {
            return Ok(());
        };
        let patch = relabelled(
            live,
            &json!({ names::BUNDLE_DEPLOYMENT: null }),
            &json!({
                names::RELEASED_BY: owner.bundle_deployment,
                names::APPLIED_HASH: null,
                names::APPLIED_AS: null,
                names::INJECT_CA_FROM: null,
            }),
        );
        self.context.cluster.patch(&key, &patch, names::INSTALL).await?;
        self.context.applier.forget(&key);
        info!(object = %key, "Released");
        Ok(())
    }

    /// Deletes the webhook configurations, ExtensionConfigs and APIServices: nobody's request depends on the bundle any more.
    pub(super) async fn disarm_callers(&self, owner: &FieldOwner) -> Result<(), Halt> {
        let callers = self.list_callers(owner, |_| false).await?;
        let crds = self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION);
        // Their conversions go on until every API server has observed the deletion.
        let converts = crds
            .iter()
            .any(|crd| is_converting(crd) && asks_for_conversion(&callers, crd));
        for live in callers {
            let deleted = self.delete(&live, owner).await;
            if converts {
                self.note_disarmed(owner);
            }
            deleted?;
        }
        Ok(())
    }

    /// Whether conversions go to a Service in `namespace` that has no ready endpoints.
    pub(super) fn is_unanswered(&self, crd: &Value, namespace: &str) -> bool {
        let name = object::text(crd, "/metadata/name").unwrap_or_default();
        let stanza = crd.pointer("/spec/conversion").unwrap_or(&Value::Null);
        let Some(conversion) = Conversion::from_stanza(name, stanza) else {
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
    pub(super) fn gate_on_disarmed(&self, owner: &FieldOwner, step: Milestone) -> Result<(), Halt> {
        self.disarming_left(owner).map_or(Ok(()), |left| {
            let message = "waiting for API servers to observe the changed webhooks";
            let outcome = InstallOutcome::waiting(step, "Disarming", message);
            Err(Halt::Later(outcome, left))
        })
    }

    /// Whether API servers may not have heard yet of what was disarmed.
    pub(super) fn is_disarming(&self, owner: &FieldOwner) -> bool {
        self.disarming_left(owner).is_some()
    }

    fn disarming_left(&self, owner: &FieldOwner) -> Option<Duration> {
        self.disarmed.left(&owner.bundle_deployment, self.timing.disarmed)
    }

    /// Notes that something was disarmed just now.
    pub(super) fn note_disarmed(&self, owner: &FieldOwner) {
        self.disarmed.note(&owner.bundle_deployment);
    }
}

/// A foreign object is no error that goes away by trying again.
pub(super) fn refused(error: ApplyError) -> Halt {
    match error {
        ApplyError::Foreign { .. } => Halt::failed(Milestone::Installed, "ForeignObject", error.to_string()),
        ApplyError::Terminating { .. } => {
            Halt::waiting(Milestone::Installed, "ObjectTerminating", error.to_string())
        }
        ApplyError::Retention { .. } => retention_failed(Milestone::Installed, &error),
        ApplyError::Request(error) if error.is_invalid() => {
            Halt::failed(Milestone::Installed, "ObjectInvalid", error.to_string())
        }
        ApplyError::Request(error) if error.is_forbidden() => {
            Halt::failed(Milestone::Installed, "Forbidden", error.to_string())
        }
        error => error.into(),
    }
}

/// What was written without what must be kept would be lost: somebody has to say what that is.
pub(super) fn retention_failed(at: Milestone, error: &ApplyError) -> Halt {
    let message = format!("{error}; correct that, or set spec.interpretation to Disabled");
    Halt::failed(at, "RetentionFailed", message)
}

/// Until its conversion is pointed elsewhere, a CRD has the trust bundle of whom it calls: none of ours, where that is who it is
/// taken over from.
fn keep_ca_source(body: &mut Value, live: &Value) {
    if !is_converting(live) {
        return;
    }
    let annotations = json::fields(body, &["metadata", "annotations"]);
    match object::annotation(live, names::INJECT_CA_FROM) {
        Some(source) => annotations.insert(names::INJECT_CA_FROM.into(), source.into()),
        None => annotations.shift_remove(names::INJECT_CA_FROM),
    };
}
