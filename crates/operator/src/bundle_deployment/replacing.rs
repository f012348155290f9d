//! Replaces a Deployment whose selector changes: that is immutable. Its ReplicaSets stay, with their pods, until nobody calls these.

use serde_json::{Value, json};
use windlass_cluster::{
    apply::{FieldOwner, covers},
    kinds,
};
use windlass_object::{ObjectKey, label_selector, names, object};

use super::{halt::Halt, reconciler::BundleReconciler};
use crate::install::{
    canary::revision,
    immutable::may_become,
    plan::{Phase, Plan},
    status::Milestone,
    traffic::{is_held, makes_way},
};

impl BundleReconciler {
    /// Deletes a Deployment whose selector changes, so that it is created again: the selector is immutable.
    /// Pods that webhooks may call are orphaned and keep serving, unless the new pods cannot run together
    /// with them.
    pub(super) async fn gate_on_selector(
        &self,
        plan: &Plan,
        desired: &Value,
        live: &Value,
        owner: &FieldOwner,
        allow_interruption: bool,
    ) -> Result<(), Halt> {
        if !selects_other_pods(desired, live) || !owner.owns(live) {
            return Ok(());
        }
        let Some(key) = ObjectKey::from_object(live) else {
            return Ok(());
        };
        let end_first = revision(live).is_none() || makes_way(desired, live, allow_interruption);
        if end_first {
            self.delete(live, owner).await?;
        } else if !object::is_terminating(live) {
            if let Some(adopter) = self.adopter(plan, live, &key).await? {
                let message = format!(
                    "the selector of {key} changes, and {adopter}, whose selector matches its pods, would take over and stop them: change the labels of one of the two, or install the bundle in another namespace"
                );
                return Err(Halt::failed(Milestone::Installed, "SelectorOverlaps", message));
            }
            let uid = object::text(live, "/metadata/uid");
            let cluster = self.context.cluster.impersonating(owner.account.as_ref());
            cluster.orphan(&key, uid).await?;
            self.context.applier.forget(&key);
        }
        let pods = if end_first {
            "its pods stop first"
        } else {
            "its pods keep serving"
        };
        let message = format!("replacing {key}, whose selector changes; {pods}");
        Err(Halt::waiting(
            Milestone::Installed,
            "ReplacingDeployment",
            message,
        ))
    }

    /// Whether an object of the installed revision is gone so that one of `next` can take its place, which differs in what
    /// cannot change, or has no place beside it. A Deployment that webhooks call and that somebody deleted with its pods is to
    /// come back.
    pub(super) async fn gives_way(
        &self,
        owner: &FieldOwner,
        installed: &Value,
        next: &Plan,
        allow_interruption: bool,
    ) -> Result<bool, Halt> {
        let Some(key) = ObjectKey::from_object(installed) else {
            return Ok(false);
        };
        if self.live(&key).await?.is_some() {
            return Ok(false);
        }
        if self.makes_room(&key, installed, next, allow_interruption) {
            return Ok(true);
        }
        let mut others = next.phases.all();
        let Some(successor) = others.find(|other| ObjectKey::from_object(other).as_ref() == Some(&key))
        else {
            return Ok(false);
        };
        if !selects_other_pods(successor, installed) && may_become(installed, successor) {
            return Ok(false);
        }
        if revision(installed).is_none() || makes_way(successor, installed, allow_interruption) {
            return Ok(true);
        }
        let orphans = self.orphans(owner, &next.namespace).await?;
        Ok(!orphans.is_empty())
    }

    /// Whether a Deployment of another name, whose pods have no place beside those of `installed`, is there instead of it.
    fn makes_room(&self, key: &ObjectKey, installed: &Value, next: &Plan, allow_interruption: bool) -> bool {
        revision(installed).is_some()
            && next.phases.of(Phase::Deployments).any(|successor| {
                makes_way(successor, installed, allow_interruption)
                    && ObjectKey::from_object(successor)
                        .is_some_and(|other| other != *key && self.context.index.find(&other).is_some())
            })
    }

    /// Whether a Deployment that webhooks call was deleted with all of its pods, and one of the next revision is there in its place,
    /// whose pods do not answer either.
    pub(super) async fn has_lost_pods(
        &self,
        owner: &FieldOwner,
        desired: &Value,
        next: &Plan,
    ) -> Result<bool, Halt> {
        let (Some(key), Some(called)) = (ObjectKey::from_object(desired), revision(desired)) else {
            return Ok(false);
        };
        let Some(live) = self.live(&key).await? else {
            return Ok(false);
        };
        let is_of_next = is_held(&live) && revision(&live) != Some(called);
        let has_none = live.pointer("/spec/replicas") == Some(&json!(0));
        if !is_of_next || has_none || selects_other_pods(desired, &live) {
            return Ok(false);
        }
        let mut successors = next.phases.of(Phase::Deployments);
        if !self.is_revision_called(owner, next, desired)
            || successors.any(|successor| self.has_pods(owner, next, successor))
        {
            return Ok(false);
        }
        let namespace = key.namespace.as_deref();
        let sets = self
            .context
            .cluster
            .list(&kinds::REPLICA_SET, namespace, Some(names::REVISION))
            .await?;
        // Pods that were rendered by another release of Windlass have another revision.
        let mut others = sets
            .iter()
            .filter(|set| may_be_of(set, &live) && revision(set) != revision(&live));
        Ok(others.next().is_none())
    }

    /// Another Deployment, of the plan or of anybody, that would adopt the ReplicaSets of this one as soon as nobody has them.
    async fn adopter(
        &self,
        plan: &Plan,
        deployment: &Value,
        key: &ObjectKey,
    ) -> Result<Option<ObjectKey>, Halt> {
        let labels = deployment
            .pointer("/spec/template/metadata/labels")
            .unwrap_or(&Value::Null);
        let namespace = key.namespace.as_deref();
        let others = self
            .context
            .cluster
            .list(&kinds::DEPLOYMENT, namespace, None)
            .await?;
        let planned = plan.phases.of(Phase::Deployments);
        Ok(others
            .iter()
            .chain(planned.filter(|planned| object::text(planned, "/metadata/namespace") == namespace))
            .filter(|other| label_selector::matches(&other["spec"]["selector"], labels))
            .filter_map(|other| object::text(other, "/metadata/name"))
            .find(|name| *name != key.name)
            .map(|name| kinds::DEPLOYMENT.object(namespace, name)))
    }

    /// Deletes ReplicaSets that were left behind when a Deployment was replaced, with their pods, when every API server has
    /// observed that nobody calls these.
    pub(super) async fn delete_orphans(&self, owner: &FieldOwner, namespace: &str) -> Result<(), Halt> {
        for set in self.orphans(owner, namespace).await? {
            self.gate_on_disarmed(owner, Milestone::Available)?;
            self.delete(&set, owner).await?;
        }
        Ok(())
    }

    /// ReplicaSets that were left behind when a Deployment was replaced.
    pub(super) async fn orphans(&self, owner: &FieldOwner, namespace: &str) -> Result<Vec<Value>, Halt> {
        let mut sets = self
            .context
            .cluster
            .list(&kinds::REPLICA_SET, Some(namespace), Some(names::REVISION))
            .await?;
        sets.retain(|set| is_orphan(set, owner));
        Ok(sets)
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

/// Whether a ReplicaSet is of a Deployment, or of nobody and may be.
fn may_be_of(set: &Value, deployment: &Value) -> bool {
    let owners = object::items(set, "/metadata/ownerReferences");
    let uid = object::text(deployment, "/metadata/uid");
    owners.is_empty() || owners.iter().any(|owner| object::text(owner, "/uid") == uid)
}

fn is_orphan(set: &Value, owner: &FieldOwner) -> bool {
    let template = set.pointer("/spec/template").unwrap_or(&Value::Null);
    object::annotation(template, names::BUNDLE_DEPLOYMENT) == Some(&owner.bundle_deployment)
        && object::items(set, "/metadata/ownerReferences").is_empty()
}
