//! Rolls Deployments out: pods of a new revision come up beside those of the old one, which end only when nobody calls them.

use std::sync::Arc;

use serde_json::Value;
use windlass_cluster::{
    apply::{Applicant, covers},
    kinds,
};
use windlass_object::{ObjectKey, names, object};

use super::{
    halt::Halt,
    reconciler::BundleReconciler,
    rollout_status::{Revisions, RolloutStatus},
};
use crate::install::{
    plan::{Phase, Plan},
    status::Milestone,
    traffic::{
        Traffic, deadline_seconds, gives_way, giving_way, held, is_held, is_rolling, keeps_old_pods, makes_way, surge,
    },
};

/// A Deployment as it is to be now.
pub(super) struct Rollout {
    body: Value,
    deadline: i64,
}

// === impl Rollout ===

impl Rollout {
    pub(super) fn is_held(&self) -> bool {
        is_held(&self.body)
    }
}

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Applies the Deployments. One whose old pods may be called (`called_elsewhere`), or were until a moment ago, is held.
    pub(super) async fn roll_out(
        &self,
        owner: &Applicant,
        plan: &Plan,
        traffic: &Traffic,
        called_elsewhere: bool,
        allow_interruption: bool,
    ) -> Result<Vec<Rollout>, Halt> {
        let mut rollouts = Vec::new();
        for desired in plan.phases.of(Phase::Deployments) {
            let Some(key) = ObjectKey::of(desired) else {
                continue;
            };
            let live = self.live(&key).await?;
            let live = live.as_deref();
            let gives_way = plan.is_serving(desired) && gives_way(desired, live, allow_interruption);
            let body = if gives_way {
                self.end_rivals(owner, plan, desired, allow_interruption).await?;
                giving_way(desired)
            } else if plan.serving.rolling_update
                && plan.is_serving(desired)
                && self
                    .keeps_old_pods(owner, plan, traffic, desired, live, called_elsewhere)
                    .await?
            {
                held(desired)
            } else {
                desired.clone()
            };
            if let Some(live) = live {
                self.gate_on_selector(desired, live, owner, allow_interruption)
                    .await?;
            }
            self.ensure(&body, owner).await?;
            rollouts.push(Rollout {
                deadline: deadline_seconds(desired),
                body,
            });
        }
        Ok(rollouts)
    }

    /// Whether old pods of a Deployment are kept. Before they are let go, the API server is asked whom webhooks call: a watch that
    /// lags shows that nobody calls them yet.
    async fn keeps_old_pods(
        &self,
        owner: &Applicant,
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
        owner: &Applicant,
        plan: &Plan,
        desired: &Value,
        allow_interruption: bool,
    ) -> Result<(), Halt> {
        let kept: Vec<_> = plan.phases.of(Phase::Deployments).filter_map(ObjectKey::of).collect();
        for live in self.owned(owner, &kinds::DEPLOYMENT) {
            let is_dropped = ObjectKey::of(&live).is_some_and(|key| !kept.contains(&key));
            if allow_interruption && is_dropped && makes_way(desired, &live, true) {
                self.delete(&live).await?;
            }
        }
        Ok(())
    }

    /// Waits until the pods of every new revision are there: of a held Deployment beside the old ones, else in their place.
    pub(super) async fn gate_on_new_pods(
        &self,
        owner: &Applicant,
        plan: &Plan,
        rollouts: &[Rollout],
    ) -> Result<(), Halt> {
        let mut waiting = Vec::new();
        let mut rolling = Vec::new();
        for rollout in rollouts {
            let Some(key) = ObjectKey::of(&rollout.body) else {
                continue;
            };
            // A watch that lags shows the revision before, which is complete and says nothing of this one.
            let seen = self.context.index.find(&key);
            let seen = seen.filter(|live| self.context.applier.is_applied(&rollout.body, live, owner));
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

    /// Deletes ReplicaSets that were left behind when a Deployment was replaced, with their pods.
    pub(super) async fn delete_orphans(&self, owner: &Applicant, namespace: &str) -> Result<(), Halt> {
        for set in self.orphans(owner, namespace).await? {
            self.delete(&set).await?;
        }
        Ok(())
    }

    /// ReplicaSets that were left behind when a Deployment was replaced.
    pub(super) async fn orphans(&self, owner: &Applicant, namespace: &str) -> Result<Vec<Value>, Halt> {
        let mut sets = self
            .context
            .cluster
            .list(&kinds::REPLICA_SET, Some(namespace), Some(names::REVISION))
            .await?;
        sets.retain(|set| is_orphan(set, owner));
        Ok(sets)
    }

    /// What of a held Deployment is not ready yet; halts when that takes too long.
    async fn unready(
        &self,
        plan: &Plan,
        rollout: &Rollout,
        live: &Arc<Value>,
    ) -> Result<Option<String>, Halt> {
        let now = self.context.clock.now();
        let revisions = Revisions::observe(
            &self.context.cluster,
            &plan.namespace,
            std::slice::from_ref(live),
            now,
        )
        .await?;
        let (ready, expected) = (revisions.ready(), surge(live));
        if revisions.has_settled(expected) {
            return Ok(None);
        }
        let since = object::condition(live, "Progressing")
            .and_then(|progressing| object::text(progressing, "/lastUpdateTime")?.parse().ok());
        let is_stuck = since.is_some_and(|since| now.duration_since(since).as_secs() > rollout.deadline);
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

    /// A Deployment's selector is immutable: it is deleted, while its pods go on serving, and another one takes its place.
    async fn gate_on_selector(
        &self,
        desired: &Value,
        live: &Value,
        owner: &Applicant,
        allow_interruption: bool,
    ) -> Result<(), Halt> {
        if !selects_other_pods(desired, live) || !owner.owns(live) {
            return Ok(());
        }
        let Some(key) = ObjectKey::of(live) else {
            return Ok(());
        };
        let makes_way = makes_way(desired, live, allow_interruption);
        if !object::is_terminating(live) {
            if makes_way {
                // Its pods would keep those of the next one from coming up.
                self.delete(live).await?;
            } else {
                let uid = object::text(live, "/metadata/uid");
                self.context.cluster.orphan(&key, uid).await?;
                self.context.applier.forget(&key);
            }
        }
        let pods = if makes_way { "end first" } else { "keep serving" };
        let message = format!("replacing {key}, whose selector changes; its pods {pods}");
        Err(Halt::waiting(
            Milestone::Installed,
            "ReplacingDeployment",
            message,
        ))
    }
}

/// Whether a Deployment has another selector than the live one, which cannot change.
pub(super) fn selects_other_pods(desired: &Value, live: &Value) -> bool {
    if object::text(desired, "/kind") != Some("Deployment") {
        return false;
    }
    let selector = |object: &Value| object.pointer("/spec/selector").cloned().unwrap_or_default();
    let (desired, live) = (selector(desired), selector(live));
    !(covers(&desired, &live, None) && covers(&live, &desired, None))
}

fn is_orphan(set: &Value, owner: &Applicant) -> bool {
    let template = set.pointer("/spec/template").unwrap_or(&Value::Null);
    object::annotation(template, names::BUNDLE_DEPLOYMENT) == Some(&owner.bundle_deployment)
        && object::items(set, "/metadata/ownerReferences").is_empty()
}
