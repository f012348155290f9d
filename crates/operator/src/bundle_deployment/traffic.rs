//! Where webhooks are to call, and how far they are from it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_cluster::{Kind, apply::FieldOwner, kinds};
use windlass_object::{ObjectKey, names, object};

use super::{halt::Halt, objects::CALLER_KINDS, reconciler::BundleReconciler};
use crate::install::{
    canary::revision,
    plan::{Phase, Plan},
    status::Milestone,
    traffic::{CalledPort, Color, Traffic, frozen_for, is_rolling, observe},
};

impl BundleReconciler {
    /// Determines which of the two Services of each Deployment the webhooks are to call, by what they call and
    /// what the Services select now ([`Color::choose`]).
    pub(super) fn traffic(&self, owner: &FieldOwner, plan: &Plan) -> Result<Traffic, Halt> {
        let called = self.called_services(owner, plan);
        let mut colors = BTreeMap::new();
        for certificate in &plan.certificates {
            let (blue, green) = (certificate.service.as_str(), certificate.green.as_str());
            let pair = observe(blue, green, &called, |color| {
                let service = plan.service(blue, color);
                service.is_some_and(|service| self.leads_to_revision(owner, plan, &service))
            });
            let Some(color) = Color::choose(&pair) else {
                let message = format!(
                    "webhooks call both {blue} and {green}, which select pods of two other revisions: to continue, set the source to one of these revisions (see windlass history {})",
                    owner.bundle_deployment
                );
                return Err(Halt::failed(Milestone::Installed, "ServicesInUse", message));
            };
            colors.insert(blue, color);
        }
        Ok(Traffic::new(plan, &colors))
    }

    /// Whether webhooks still call a Service that they are not to call.
    pub(super) fn is_called_elsewhere(&self, owner: &FieldOwner, plan: &Plan, traffic: &Traffic) -> bool {
        traffic.leaves(&self.calls(owner, plan))
    }

    /// Whether pods of another revision may be called: what they live on stays.
    pub(super) fn is_in_transition(&self, owner: &FieldOwner, plan: &Plan, called_elsewhere: bool) -> bool {
        let unobserved = self.is_disarming(owner);
        let may_be_called = plan.phases.of(Phase::Deployments).any(|desired| {
            let live = ObjectKey::from_object(desired).and_then(|key| self.context.index.find(&key));
            live.is_some_and(|live| {
                if plan.is_serving(desired) {
                    is_rolling(desired, &live)
                } else {
                    unobserved && revision(&live).is_some()
                }
            })
        });
        called_elsewhere || may_be_called
    }

    /// Whether webhooks call the Service, as the API server has them.
    pub(super) async fn is_called(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        service: &Value,
    ) -> Result<bool, Halt> {
        let namespace = object::text(service, "/metadata/namespace").unwrap_or_default();
        let name = object::text(service, "/metadata/name").unwrap_or_default();
        let calls = self.list_calls(owner, plan).await?;
        Ok(calls
            .iter()
            .any(|call| call.namespace == namespace && call.service == name))
    }

    /// Whom webhooks call, as the API server has them: what is decided on it cannot be undone.
    pub(super) async fn list_calls(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
    ) -> Result<BTreeSet<CalledPort>, Halt> {
        let mut callers = self.calling(owner, plan).await?;
        callers.extend(self.list_owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION).await?);
        Ok(callers.iter().flat_map(|caller| plan.calls_of(caller)).collect())
    }

    /// The webhook configurations and other callers of a bundle, and what it takes over, as the API server has them. CRDs that it
    /// owns are left out.
    pub(super) async fn calling(&self, owner: &FieldOwner, plan: &Plan) -> Result<Vec<Value>, Halt> {
        let is_planned = |kind: &Kind| {
            let mut callers = plan.phases.of(Phase::Callers);
            callers.any(|caller| object::text(caller, "/kind") == Some(&kind.kind))
        };
        let mut callers = self.list_callers(owner, is_planned).await?;
        for key in self.adopted_callers(owner, plan) {
            callers.extend(self.context.cluster.read(&key).await?);
        }
        Ok(callers)
    }

    /// Whether a Service, as the watches see it, leads to the pods of the plan.
    pub(super) fn leads_to_revision(&self, owner: &FieldOwner, plan: &Plan, desired: &Value) -> bool {
        let live = ObjectKey::from_object(desired).and_then(|key| self.context.index.find(&key));
        self.leads_as_desired(owner, plan, desired, live.as_deref())
    }

    /// Whether `live` leads to the pods of the plan, or did before somebody changed it.
    pub(super) fn leads_as_desired(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        desired: &Value,
        live: Option<&Value>,
    ) -> bool {
        match live {
            // It leads to the pods of whoever it is taken over from.
            Some(live) if is_to_be_adopted(owner, live) => false,
            Some(live) if object::annotation(live, names::APPLIED_HASH).is_some() => {
                self.context.applier.was_applied(desired, live, owner)
            }
            // It is gone, or was replaced by somebody: it led to the pods that there are, or to the new ones of those.
            _ => !self.is_in_transition(owner, plan, false) || self.is_frozen_for(plan, desired),
        }
    }

    /// Whether webhooks call pods of the plan through a Service, or were about to: a Deployment is frozen for it.
    fn is_frozen_for(&self, plan: &Plan, service: &Value) -> bool {
        let name = object::text(service, "/metadata/name");
        plan.phases.of(Phase::Deployments).any(|desired| {
            let live = ObjectKey::from_object(desired).and_then(|key| self.context.index.find(&key));
            live.is_some_and(|live| {
                name.is_some() && frozen_for(&live) == name && revision(&live) == revision(desired)
            })
        })
    }

    /// The Services in the namespace of the plan that webhooks call.
    pub(super) fn called_services(&self, owner: &FieldOwner, plan: &Plan) -> BTreeSet<String> {
        self.calls(owner, plan)
            .into_iter()
            .filter(|call| call.namespace == plan.namespace)
            .map(|call| call.service)
            .collect()
    }

    /// Whom webhooks call, as the watches see them.
    fn calls(&self, owner: &FieldOwner, plan: &Plan) -> BTreeSet<CalledPort> {
        CALLER_KINDS
            .iter()
            .chain(&[kinds::CUSTOM_RESOURCE_DEFINITION])
            .flat_map(|kind| self.owned(owner, kind))
            .chain(
                self.adopted_callers(owner, plan)
                    .iter()
                    .filter_map(|key| self.context.index.find(key)),
            )
            .flat_map(|caller| plan.calls_of(&caller))
            .collect()
    }

    /// What of others sends traffic to webhooks, and is to be taken over: it is pointed elsewhere as what is ours.
    fn adopted_callers(&self, owner: &FieldOwner, plan: &Plan) -> Vec<ObjectKey> {
        if owner.adopt.is_empty() {
            return Vec::new();
        }
        let crds = plan.phases.of(Phase::Crds);
        let keys = plan
            .phases
            .of(Phase::Callers)
            .chain(crds)
            .filter_map(ObjectKey::from_object);
        keys.filter(|key| {
            let live = self.context.index.find(key);
            live.is_some_and(|live| is_to_be_adopted(owner, &live))
        })
        .collect()
    }
}

/// Whether `live` is somebody else's and is to be taken over.
fn is_to_be_adopted(owner: &FieldOwner, live: &Value) -> bool {
    !owner.owns(live) && owner.adopt.iter().any(|adoption| adoption.names(live))
}
