//! What is there of an install, as the watches see it or as the API server has it.

use std::sync::Arc;

use serde_json::Value;
use windlass_cluster::{Kind, RequestError, apply::FieldOwner, kinds};
use windlass_object::{ObjectKey, names};

use super::{
    deletion::keeps,
    halt::{BundleDeploymentError, Halt},
    objects::CALLER_KINDS,
    reconciler::BundleReconciler,
};
use crate::install::plan::{Phase, Plan, dropped_versions, stops_serving, waits_for_proof};

impl BundleReconciler {
    /// The object as a watch sees it, else as the API server has it.
    pub(super) async fn live(&self, key: &ObjectKey) -> Result<Option<Arc<Value>>, RequestError> {
        if let Some(seen) = self.context.index.find(key) {
            return Ok(Some(seen));
        }
        match self.context.cluster.read(key).await {
            // What is not served is not there.
            Err(RequestError::UnknownKind { .. }) => Ok(None),
            read => Ok(read?.map(Arc::new)),
        }
    }

    /// The live CRD; whole, and as the API server has it, where it is not as desired: what a watch that lags shows
    /// would take a version away that is served already, and a version that the bundle dropped must be kept as it is.
    pub(super) async fn crd(
        &self,
        key: &ObjectKey,
        desired: &Value,
    ) -> Result<Option<Arc<Value>>, RequestError> {
        let seen = self.live(key).await?;
        let is_as_wanted = seen.as_deref().is_none_or(|seen| {
            let drops = dropped_versions(desired, seen).next().is_some();
            !drops && !waits_for_proof(desired, seen) && !stops_serving(desired, seen)
        });
        if is_as_wanted {
            return Ok(seen);
        }
        Ok(self.context.cluster.read(key).await?.map(Arc::new))
    }

    /// A CustomResourceDefinition as the watches see it: without schemas.
    pub(super) fn crd_seen(&self, name: &str) -> Option<Arc<Value>> {
        self.context
            .index
            .find(&kinds::CUSTOM_RESOURCE_DEFINITION.object(None, name))
    }

    /// The Deployments of a plan as the watches see them.
    pub(super) fn deployments_of(&self, plan: &Plan) -> Vec<Arc<Value>> {
        let keys = plan
            .phases
            .of(Phase::Deployments)
            .filter_map(ObjectKey::from_object);
        keys.filter_map(|key| self.context.index.find(&key)).collect()
    }

    /// The objects of a kind that were installed for a BundleDeployment, as the watches see them. Copies of them, which
    /// carry its label too, are nobody's.
    pub(super) fn owned(&self, owner: &FieldOwner, kind: &Kind) -> Vec<Arc<Value>> {
        // Tenants have as many of some kinds as they like: one is parsed at a time.
        let owned = self.context.index.select(kind, |object| owner.owns(object));
        owned.into_values().map(|object| object.read()).collect()
    }

    /// The objects of a kind that belong to a BundleDeployment, as the API server has them: what is decided on them
    /// cannot be undone.
    pub(super) async fn list_owned(&self, owner: &FieldOwner, kind: &Kind) -> Result<Vec<Value>, Halt> {
        let selector = format!("{}={}", names::BUNDLE_DEPLOYMENT, owner.bundle_deployment);
        let mut objects = self.context.cluster.list(kind, None, Some(&selector)).await?;
        objects.retain(|object| owner.owns(object));
        Ok(objects)
    }

    /// What sends traffic to what a BundleDeployment serves, beside CRDs, as the API server has it. Kinds that are not served have
    /// no objects. One that the API server cannot list, since a webhook of somebody else is broken, brings to a halt only who
    /// has objects of it, by the watches or since they `are_planned`.
    pub(super) async fn list_callers(
        &self,
        owner: &FieldOwner,
        are_planned: impl Fn(&Kind) -> bool,
    ) -> Result<Vec<Value>, Halt> {
        let unlisted = self.context.watches.unlisted();
        let mut callers: Vec<Value> = Vec::new();
        for kind in CALLER_KINDS.iter() {
            let is_dispensable =
                || !is_essential(kind) && !are_planned(kind) && self.owned(owner, kind).is_empty();
            // From Kubernetes 1.37 on, such a list hangs instead of failing.
            if unlisted.contains(kind) && is_dispensable() {
                continue;
            }
            match self.list_owned(owner, kind).await {
                Ok(listed) => {
                    let known: Vec<_> = callers.iter().filter_map(ObjectKey::from_object).collect();
                    let is_new = |key: ObjectKey| !keeps(&known, &key);
                    callers.extend(
                        listed
                            .into_iter()
                            .filter(|listed| ObjectKey::from_object(listed).is_some_and(is_new)),
                    );
                }
                Err(Halt::Error(error)) if is_unserved(&error) => {}
                Err(Halt::Error(error)) if is_refused(&error) && is_dispensable() => {}
                Err(halt) => return Err(halt),
            }
        }
        Ok(callers)
    }
}

/// Whether every API server serves a kind by itself.
fn is_essential(kind: &Kind) -> bool {
    [
        kinds::VALIDATING_WEBHOOK_CONFIGURATION,
        kinds::MUTATING_WEBHOOK_CONFIGURATION,
    ]
    .contains(kind)
}

fn is_unserved(error: &BundleDeploymentError) -> bool {
    matches!(error, BundleDeploymentError::Request(error)
        if error.is_not_found() || matches!(error, RequestError::UnknownKind { .. }))
}

/// Whether the API server has answered, and would answer the same again.
fn is_refused(error: &BundleDeploymentError) -> bool {
    matches!(error, BundleDeploymentError::Request(RequestError::Refused { status, .. }) if status.code != 429)
}
