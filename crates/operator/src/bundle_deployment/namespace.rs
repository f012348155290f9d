//! The namespace of an install. It may be deleted first, with everything that serves webhooks in it: nothing may call
//! these then, or what is in the namespace could not be deleted either.

use serde_json::{Value, json};
use tracing::info;
use windlass_api::DeletionPolicy;
use windlass_cluster::{apply::FieldOwner, kinds};
use windlass_object::{
    ObjectKey, names, object,
    patch::{put, test},
};

use super::{halt::Halt, reconciler::BundleReconciler};
use crate::install::{
    plan::{Plan, unservable_versions},
    status::Milestone,
};

/// Whether there is a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespace {
    /// There is none.
    Absent,
    /// It is there to stay.
    Present,
    /// It is being deleted, and everything in it.
    Terminating,
}

/// What becomes of a bundle whose namespace goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// It is installed again, into a new namespace.
    Installed,
    /// It is removed.
    Removed(DeletionPolicy),
}

impl BundleReconciler {
    /// Whether there is the namespace.
    pub(super) async fn namespace(&self, name: &str) -> Result<Namespace, Halt> {
        let live = self
            .context
            .cluster
            .read(&kinds::NAMESPACE.object(None, name))
            .await?;
        Ok(match live {
            None => Namespace::Absent,
            Some(live) if object::is_terminating(&live) => Namespace::Terminating,
            Some(_) => Namespace::Present,
        })
    }

    /// An existing namespace stays whose it is.
    pub(super) async fn ensure_namespace(&self, owner: &FieldOwner, plan: &Plan) -> Result<(), Halt> {
        match self.namespace(&plan.namespace).await? {
            Namespace::Present => Ok(()),
            Namespace::Absent => {
                let key = kinds::NAMESPACE.object(None, &plan.namespace);
                let namespace = json!({
                    "apiVersion": key.api_version, "kind": key.kind, "metadata": {"name": key.name}
                });
                self.context.applier.ensure(&namespace, owner).await?;
                Ok(())
            }
            Namespace::Terminating => {
                let message = format!("the namespace {} is being deleted", plan.namespace);
                Err(Halt::waiting(
                    Milestone::Installed,
                    "NamespaceTerminating",
                    message,
                ))
            }
        }
    }

    /// Lets a namespace go that is in `state`, not there to stay: no admission webhook is called in it any more, and of the CRDs
    /// whose conversion nobody answers, only the version is served that needs none. What comes back is armed and served
    /// again once it is proven.
    pub(super) async fn let_go(
        &self,
        owner: &FieldOwner,
        namespace: &str,
        state: Namespace,
        afterwards: Afterwards,
    ) -> Result<(), Halt> {
        self.disarm_callers(owner).await?;
        let mut unanswered = self.list_owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION).await?;
        unanswered.retain(|live| self.is_unanswered(live, namespace));
        // A CRD that goes takes all objects with it, wherever they are.
        let keeps_crds = afterwards != Afterwards::Removed(DeletionPolicy::DeleteCRDs);
        let namespaces = if keeps_crds
            && unanswered
                .iter()
                .any(|live| !unservable_versions(live).is_empty())
        {
            self.terminating_namespaces().await?
        } else {
            Vec::new()
        };
        for live in unanswered {
            if !unservable_versions(&live).is_empty() {
                self.empty_namespaces(owner, &live, &namespaces).await?;
            }
            // The namespace controller would remember that it did not find a version that is served again soon.
            if state == Namespace::Absent || afterwards != Afterwards::Installed {
                self.serve_stored_only(&live).await?;
            }
        }
        Ok(())
    }

    async fn serve_stored_only(&self, crd: &Value) -> Result<(), Halt> {
        let Some(key) = ObjectKey::from_object(crd) else {
            return Ok(());
        };
        let dropped = unservable_versions(crd);
        if dropped.is_empty() {
            // A crash may have left the entry of an earlier change.
            self.context.applier.release(&key, crd, names::CONVERSION).await?;
            return Ok(());
        }
        let mut operations = vec![test("/metadata/uid", &crd["metadata"]["uid"])];
        for (index, version) in &dropped {
            let path = format!("/spec/versions/{index}");
            operations.push(test(&format!("{path}/name"), &json!(version)));
            operations.push(put(&format!("{path}/served"), json!(false)));
        }
        let patch = json_patch::Patch(operations);
        let live = self
            .context
            .cluster
            .patch(&key, &patch, names::CONVERSION)
            .await?;
        let versions: Vec<_> = dropped.iter().map(|(_, version)| *version).collect();
        info!(object = %key, ?versions, "No server is left to convert these versions; stopped serving them");
        self.context
            .applier
            .release(&key, &live, names::CONVERSION)
            .await?;
        Ok(())
    }
}
