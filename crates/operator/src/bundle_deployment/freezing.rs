//! Freezes a Deployment whose new pods webhooks are about to call, until old ones may end.

use serde_json::Value;
use windlass_cluster::{apply::FieldOwner, kinds};
use windlass_object::{ObjectKey, names, object, patch};

use super::{
    halt::{Halt, LAG},
    reconciler::BundleReconciler,
    rollout::Rollout,
};
use crate::install::{
    canary::revision,
    plan::Plan,
    status::{InstallOutcome, Milestone},
    traffic::{Traffic, frozen, frozen_for, held, is_frozen, original_template},
};

impl BundleReconciler {
    /// Pauses the Deployments whose new pods webhooks are about to call, and waits until that is observed.
    /// Otherwise a change of a template by another client would end ready pods.
    pub(super) async fn freeze(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        rollouts: &[Rollout],
    ) -> Result<(), Halt> {
        let mut is_frozen = true;
        for rollout in rollouts {
            if !rollout.is_held() || frozen_for(&rollout.body).is_some() {
                continue;
            }
            if let Some(service) = called_through(plan, traffic, &rollout.desired) {
                self.ensure(&frozen(&rollout.desired, service), owner).await?;
                is_frozen = false;
            }
        }
        if is_frozen {
            return Ok(());
        }
        let message = "waiting to observe that Deployments are paused before webhooks call their new pods";
        let outcome = InstallOutcome::waiting(Milestone::Available, "RollingOut", message);
        Err(Halt::Later(outcome, LAG))
    }

    /// Waits until the Deployment controller has seen what is frozen: until then it may end new pods for somebody's restart.
    pub(super) fn gate_on_freeze(&self, rollouts: &[Rollout]) -> Result<(), Halt> {
        for rollout in rollouts
            .iter()
            .filter(|rollout| frozen_for(&rollout.body).is_some())
        {
            let live = ObjectKey::from_object(&rollout.body).and_then(|key| self.context.index.find(&key));
            if !live.is_some_and(|live| is_frozen(&live)) {
                let name = object::text(&rollout.body, "/metadata/name").unwrap_or_default();
                let message = format!(
                    "waiting to observe that Deployment {name} is paused before webhooks call its new pods"
                );
                return Err(Halt::waiting(Milestone::Available, "RollingOut", message));
            }
        }
        Ok(())
    }

    /// Takes away what others have changed in the template of a Deployment since it was frozen, before it is released.
    pub(super) async fn put_template_back(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        desired: &Value,
        live: &Value,
    ) -> Result<(), Halt> {
        let Some(key) = ObjectKey::from_object(live) else {
            return Ok(());
        };
        if frozen_for(live).is_none() || revision(live) != revision(desired) {
            return Ok(());
        }
        // What is ours is applied; what others have added is not taken away by that.
        self.ensure(&stopped(plan, traffic, desired, Some(live)), owner)
            .await?;
        let cluster = &self.context.cluster;
        let Some(asked) = cluster.read(&key).await? else {
            return Ok(());
        };
        let sets = cluster
            .list(&kinds::REPLICA_SET, Some(&plan.namespace), None)
            .await?;
        let Some(template) = original_template(&asked, &sets) else {
            return Ok(());
        };
        let version = &asked["metadata"]["resourceVersion"];
        let patch = patch::guarded(
            &[("/metadata/resourceVersion", version)],
            "/spec/template",
            &template,
        );
        let cluster = cluster.impersonating(owner.account.as_ref());
        cluster.patch(&key, &patch, names::INSTALL).await?;
        let message = format!(
            "waiting to observe the restored pod template of {key}: another client changed it, which would stop its new pods"
        );
        Err(Halt::waiting(Milestone::Available, "RollingOut", message))
    }
}

/// A Deployment whose old pods are kept: held, and still frozen where it was.
pub(super) fn stopped(plan: &Plan, traffic: &Traffic, desired: &Value, live: Option<&Value>) -> Value {
    let service = called_through(plan, traffic, desired);
    let is_frozen =
        live.is_some_and(|live| revision(live) == revision(desired) && frozen_for(live).is_some());
    match service {
        Some(service) if is_frozen => frozen(desired, service),
        _ => held(desired),
    }
}

/// The Service through which webhooks are to call the pods of a Deployment.
fn called_through<'a>(plan: &Plan, traffic: &'a Traffic, deployment: &Value) -> Option<&'a str> {
    let name = object::text(deployment, "/metadata/name");
    let mut certificates = plan.certificates.iter();
    let certificate = certificates.find(|certificate| Some(certificate.deployment.as_str()) == name)?;
    traffic.service_of(certificate)
}
