//! Rolls Deployments out: pods of a new revision come up beside those of the old one, which end only when nobody calls them.

use std::sync::Arc;

use serde_json::Value;
use windlass_cluster::{apply::FieldOwner, kinds};
use windlass_object::{ObjectKey, object};

use super::{
    freezing::stopped,
    halt::{Halt, LAG},
    reconciler::BundleReconciler,
    revisions::Revisions,
    rollout::Rollout,
    rollout_status::RolloutStatus,
};
use crate::install::{
    canary::revision,
    plan::{Phase, Plan},
    status::{InstallOutcome, Milestone},
    traffic::{
        Traffic, deadline_seconds, ending_old_pods_first, ends_old_pods_first, frozen_for, is_coming_up,
        is_held, is_rolling, keeps_old_pods, leaves_as_is, makes_way, surge,
    },
};

impl BundleReconciler {
    /// Applies the Deployments, and decides whether the old pods of each may end: a Deployment is held while
    /// its old pods may be called (`called_elsewhere`), or were until recently. Deployments that serve no
    /// webhooks wait until only pods of the plan are called (not `in_transition`), because webhooks may call
    /// their pods.
    pub(super) async fn roll_out(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        called_elsewhere: bool,
        in_transition: bool,
        allow_interruption: bool,
    ) -> Result<Vec<Rollout>, Halt> {
        let mut rollouts = Vec::new();
        for desired in plan.phases.of(Phase::Deployments) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let live = self.live(&key).await?;
            let live = live.as_deref();
            let is_serving = plan.is_serving(desired);
            if in_transition && !is_serving && live.is_some() {
                continue;
            }
            let ends_first = is_serving && ends_old_pods_first(desired, live, allow_interruption);
            if ends_first {
                self.end_rivals(owner, plan, desired, allow_interruption).await?;
            }
            // A new one has no old pods; those of another, which are called, are let go with the hold.
            let keeps = is_serving
                && (!ends_first || live.is_none())
                && self
                    .keeps_old_pods(owner, plan, traffic, desired, live, called_elsewhere)
                    .await?;
            if keeps && self.stays(owner, plan, desired, live).await? {
                continue;
            }
            if let Some(live) = live {
                self.gate_on_selector(plan, desired, live, owner, allow_interruption)
                    .await?;
            }
            if let Some(live) = live.filter(|_| !keeps) {
                self.put_template_back(owner, plan, traffic, desired, live)
                    .await?;
            }
            let body = if keeps {
                stopped(plan, traffic, desired, live)
            } else if ends_first {
                ending_old_pods_first(desired)
            } else {
                desired.clone()
            };
            self.ensure(&body, owner).await?;
            rollouts.push(Rollout {
                desired: desired.clone(),
                body,
                is_serving,
            });
        }
        Ok(rollouts)
    }

    /// Whether a Deployment is left as it is while webhooks go back to the older of its revisions. A watch that lags may show the
    /// template of a revision that is neither.
    async fn stays(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        desired: &Value,
        live: Option<&Value>,
    ) -> Result<bool, Halt> {
        let Some(key) = ObjectKey::from_object(desired) else {
            return Ok(false);
        };
        if !leaves_as_is(desired, live, self.has_pods(owner, plan, desired)) {
            return Ok(false);
        }
        let asked = self.context.cluster.read(&key).await?;
        if leaves_as_is(desired, asked.as_ref(), true) {
            return Ok(true);
        }
        let message = format!("waiting to observe the template of {key}");
        let outcome = InstallOutcome::waiting(Milestone::Available, "RollingOut", message);
        Err(Halt::Later(outcome, LAG))
    }

    /// Whether old pods of a Deployment are kept. Before they are let go, the API server is asked whom webhooks call: a watch that
    /// lags shows that nobody calls them yet.
    async fn keeps_old_pods(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        desired: &Value,
        live: Option<&Value>,
        called_elsewhere: bool,
    ) -> Result<bool, Halt> {
        let keeps = keeps_old_pods(desired, live, called_elsewhere, self.is_disarming(owner));
        if keeps || !live.is_some_and(|live| is_rolling(desired, live)) {
            return Ok(keeps);
        }
        Ok(traffic.leaves(&self.list_calls(owner, plan).await?))
    }

    /// Deletes the Deployments that the plan drops and that are to make way for the pods of `desired`, if that may interrupt what they
    /// serve.
    async fn end_rivals(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        desired: &Value,
        allow_interruption: bool,
    ) -> Result<(), Halt> {
        let kept: Vec<_> = plan
            .phases
            .of(Phase::Deployments)
            .filter_map(ObjectKey::from_object)
            .collect();
        for live in self.owned(owner, &kinds::DEPLOYMENT) {
            let is_dropped = ObjectKey::from_object(&live).is_some_and(|key| !kept.contains(&key));
            if allow_interruption && is_dropped && makes_way(desired, &live, true) {
                self.delete(&live, owner).await?;
            }
        }
        Ok(())
    }

    /// Waits until the pods of another revision that webhooks call have come up, as after somebody has deleted them: another
    /// template would end them before (`cleanupUnhealthyReplicas`). A watch that lags shows what is gone.
    pub(super) async fn gate_on_called_pods(&self, owner: &FieldOwner, plan: &Plan) -> Result<(), Halt> {
        for desired in plan.phases.of(Phase::Deployments) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let seen = self.context.index.find(&key);
            let is_called = seen.is_some_and(|seen| {
                revision(&seen) != revision(desired)
                    && !is_held(&seen)
                    && self.is_revision_called(owner, plan, &seen)
            });
            if !is_called {
                continue;
            }
            let Some(live) = self.context.cluster.read(&key).await? else {
                let message = format!("waiting to observe the deletion of {key}");
                let outcome = InstallOutcome::waiting(Milestone::Available, "RollingOut", message);
                return Err(Halt::Later(outcome, LAG));
            };
            if let RolloutStatus::Running(message) = RolloutStatus::of(&live)
                && is_coming_up(&live)
            {
                return Err(self.coming_up(plan, live, message).await?);
            }
        }
        Ok(())
    }

    async fn coming_up(&self, plan: &Plan, live: Value, message: String) -> Result<Halt, Halt> {
        let (cluster, now) = (&self.context.cluster, self.context.clock.now());
        let revisions = Revisions::observe(cluster, &plan.namespace, &[Arc::new(live)], now).await?;
        let words = [vec![message], revisions.unready()].concat().join("; ");
        let message = format!("waiting for pods of the previous revision, which webhooks call: {words}");
        Ok(Halt::waiting(Milestone::Available, "RollingOut", message))
    }

    /// Waits until the pods of every new revision are there: of a held Deployment beside the old ones, else in their place.
    pub(super) async fn gate_on_new_pods(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        rollouts: &[&Rollout],
    ) -> Result<(), Halt> {
        let mut waiting = Vec::new();
        let mut rolling = Vec::new();
        for rollout in rollouts {
            let Some(key) = ObjectKey::from_object(&rollout.body) else {
                continue;
            };
            // A watch that lags shows the revision before, which is complete and says nothing of this one.
            let seen = self.context.index.find(&key);
            let seen = seen.filter(|live| {
                self.context.applier.is_applied(&rollout.body, live, owner)
                    || self.unretained.has(&owner.bundle_deployment, &key)
            });
            let Some(live) = seen else {
                waiting.push(format!("waiting to observe {key} as applied"));
                continue;
            };
            if rollout.is_held() {
                waiting.extend(self.unready(plan, rollout, &live).await?);
                continue;
            }
            match RolloutStatus::of(&live) {
                RolloutStatus::Complete => {}
                RolloutStatus::Running(message) => {
                    waiting.push(message);
                    rolling.push(live);
                }
                RolloutStatus::Stuck(message) => {
                    return Err(Halt::failed(Milestone::Available, "RolloutStuck", message));
                }
            }
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let now = self.context.clock.now();
        let revisions = Revisions::observe(&self.context.cluster, &plan.namespace, &rolling, now).await?;
        waiting.extend(revisions.unready());
        Err(Halt::waiting(
            Milestone::Available,
            "RollingOut",
            waiting.join("; "),
        ))
    }

    /// Waits until no pod of an old revision is left.
    pub(super) async fn gate_on_old_pods(&self, plan: &Plan) -> Result<(), Halt> {
        let deployments = self.deployments_of(plan);
        let now = self.context.clock.now();
        let revisions = Revisions::observe(&self.context.cluster, &plan.namespace, &deployments, now).await?;
        if revisions.old.is_empty() {
            return Ok(());
        }
        let message = format!(
            "pods of the previous revision are still terminating: {}",
            revisions.old.join(", ")
        );
        Err(Halt::waiting(Milestone::Available, "RollingOut", message))
    }

    /// What of a held Deployment is not ready yet; halts when that takes too long.
    async fn unready(
        &self,
        plan: &Plan,
        rollout: &Rollout,
        live: &Arc<Value>,
    ) -> Result<Option<String>, Halt> {
        let now = self.context.clock.now();
        let deployments = std::slice::from_ref(live);
        let revisions = Revisions::observe_plan(&self.context.cluster, plan, deployments, now).await?;
        let (ready, expected) = (revisions.ready(), surge(live));
        if rollout.has_new_pods(live, &revisions) {
            return Ok(None);
        }
        let since = object::condition(live, "Progressing")
            .and_then(|progressing| object::text(progressing, "/lastUpdateTime")?.parse().ok());
        // What is frozen makes no progress, and says so.
        let is_stuck = frozen_for(live).is_none()
            && since.is_some_and(|since| {
                now.duration_since(since).as_secs() > deadline_seconds(&rollout.desired)
            });
        let unready = revisions.obstacles(live, is_stuck);
        let name = object::text(live, "/metadata/name").unwrap_or_default();
        let state = format!(
            "Deployment {name}: {ready} of {expected} new pods ready{}; pods of the previous revision keep serving",
            unready
                .iter()
                .map(|words| format!("; {words}"))
                .collect::<String>()
        );
        if is_stuck {
            return Err(Halt::failed(Milestone::Available, "RolloutStuck", state));
        }
        Ok(Some(state))
    }
}
