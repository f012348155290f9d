//! Deleting what was installed, and what of it is not desired any more.

use serde_json::{Value, json};
use windlass_api::BundleDeployment;
use windlass_cluster::{RequestError, apply::FieldOwner, kinds};
use windlass_object::{ObjectKey, names, object, text::Listing};

use super::{halt::Halt, reconciler::BundleReconciler, triggers::OWNED_KINDS};
use crate::{
    install::{
        plan::{Phase, Plan},
        status::Milestone,
        traffic::Traffic,
    },
    removal_obstacles::stored_kind,
};

/// How a message lists objects.
const OBJECTS: Listing = Listing {
    most: 10,
    separator: ", ",
    way_to_rest: "",
};

impl BundleReconciler {
    /// Deletes the CRDs with every object of them. The operator still runs and converts: it may have finalizers on
    /// its objects, and the API server reads each before it deletes it.
    pub(super) async fn delete_crds(&self, owner: &FieldOwner, namespace: &str) -> Result<(), Halt> {
        let mut left = Vec::new();
        for live in self.list_owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION).await? {
            self.delete(&live, owner).await?;
            let is_going = object::is_terminating(&live);
            if is_going && self.is_unanswered(&live, namespace) {
                // The API server reads what it deletes, and nobody else is to be answered rightly any more.
                self.context
                    .applier
                    .set_conversion(&live, &json!({"strategy": "None"}))
                    .await?;
            }
            left.push(self.rest(&live).await?);
        }
        if left.is_empty() {
            return Ok(());
        }
        let message = format!("waiting for these to be deleted: {}", left.join("; "));
        Err(Halt::waiting(Milestone::Armed, "DeletingCRDs", message))
    }

    /// What is left of a CRD that is being deleted, and what holds it.
    async fn rest(&self, crd: &Value) -> Result<String, Halt> {
        let name = object::text(crd, "/metadata/name").unwrap_or_default();
        let held = match self.context.cluster.find_any(&stored_kind(crd)).await {
            Ok(Some(object)) => object,
            // The API server says what it cannot do.
            Ok(None) | Err(RequestError::UnknownKind { .. }) => Value::Null,
            Err(error) => return Ok(format!("{name} ({error})")),
        };
        Ok(match ObjectKey::from_object(&held) {
            Some(key) => format!("{name} (still has {})", held_by(&key, &held)),
            None => name.to_owned(),
        })
    }

    /// Deletes what was installed, last to first, each phase only when the one after it is gone.
    pub(super) async fn delete_everything(&self, owner: &FieldOwner) -> Result<(), Halt> {
        for phase in Phase::ALL.into_iter().rev() {
            let mut left = Vec::new();
            for kind in OWNED_KINDS
                .iter()
                .filter(|kind| Phase::for_kind(&kind.kind) == phase)
            {
                for live in self.owned(owner, kind) {
                    self.delete(&live, owner).await?;
                    left.extend(ObjectKey::from_object(&live));
                }
            }
            if !left.is_empty() {
                let message = format!("waiting for these to be deleted: {}", OBJECTS.summarize(&left));
                return Err(Halt::waiting(Milestone::Armed, "Removing", message));
            }
        }
        Ok(())
    }

    /// Deletes the objects that the plan no longer contains, in reverse order. CRDs that the bundle dropped
    /// stay with their objects.
    pub(super) async fn remove_dropped(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
    ) -> Result<(), Halt> {
        let kept = plan.phases.all().chain(&traffic.services);
        let kept: Vec<_> = kept.filter_map(ObjectKey::from_object).collect();
        let is_dropped = |live: &Value| ObjectKey::from_object(live).is_some_and(|key| !keeps(&kept, &key));
        let mut dropped: Vec<_> = OWNED_KINDS
            .iter()
            .flat_map(|kind| self.owned(owner, kind))
            .filter(|live| is_dropped(live))
            .collect();
        dropped.sort_by_key(|live| {
            std::cmp::Reverse(Phase::for_kind(object::text(live, "/kind").unwrap_or_default()))
        });
        let serves = |live: &Value| {
            let phase = Phase::for_kind(object::text(live, "/kind").unwrap_or_default());
            let is_canary = object::label(live, names::CANARY).is_some();
            !is_canary && matches!(phase, Phase::Services | Phase::Certificates | Phase::Deployments)
        };
        if dropped.iter().any(|live| serves(live)) {
            self.gate_on_disarmed(owner, Milestone::Armed)?;
            self.gate_on_other_callers(deployment, owner, is_dropped)?;
        }
        for live in dropped {
            self.delete(&live, owner).await?;
        }
        // The kinds of what serves are essential: workers start only when they are listed.
        for live in self.unlisted_rest(owner, deployment, &kept).await? {
            self.delete(&live, owner).await?;
        }
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            if is_dropped(&live) {
                self.release(&live, owner).await?;
            }
        }
        Ok(())
    }
}

/// An object that is there, and what holds it.
pub(super) fn held_by(key: &ObjectKey, held: &Value) -> String {
    let finalizers = object::finalizers(held);
    if finalizers.is_empty() {
        return key.to_string();
    }
    format!(
        "{key}, which is waiting for its finalizers to be removed: {}",
        finalizers.join(", ")
    )
}

/// Whether an object is among those that are kept. A watch shows it in a version of its own, which may be another than
/// the one that it was applied in.
pub(super) fn keeps(kept: &[ObjectKey], key: &ObjectKey) -> bool {
    kept.iter().any(|kept| kept.is_same_object(key))
}

#[cfg(test)]
mod tests {
    use windlass_object::InCluster;

    use super::*;

    #[test]
    fn what_a_watch_shows_in_another_version_is_kept() {
        let key = |api_version: &str, name: &str| ObjectKey {
            cluster: InCluster::Local,
            api_version: api_version.to_owned(),
            kind: "ConsolePlugin".to_owned(),
            namespace: None,
            name: name.to_owned(),
        };
        let kept = [key("console.openshift.io/v1alpha1", "a")];
        assert!(keeps(&kept, &key("console.openshift.io/v1", "a")));
        assert!(!keeps(&kept, &key("console.openshift.io/v1", "b")));
        assert!(!keeps(&kept, &key("console.example.com/v1", "a")));
    }
}
