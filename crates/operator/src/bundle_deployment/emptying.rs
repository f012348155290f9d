//! Emptying namespaces of objects that Kubernetes cannot read any more.
//!
//! The namespace controller deletes objects in the version that the API server prefers. Where nobody converts to it, nothing
//! can be deleted. If instead that version stopped being served, the controller might ask for it once more, take the answer for
//! "there are no such objects", and let the namespace go without them; it even remembers that answer for all namespaces
//! (`operationNotSupportedCache` of `pkg/controller/namespace/deletion`). So what is in namespaces that are being deleted
//! is deleted in the version in which it is stored, and versions stop being served when that is done.

use std::time::Duration;

use serde_json::Value;
use windlass_cluster::{RequestError, apply::FieldOwner, kinds, telemetry::chain};
use windlass_crd::grant::ObjectWork;
use windlass_object::{ObjectKey, object, text::Listing};

use super::{deletion::held_by, halt::Halt, reconciler::BundleReconciler};
use crate::{
    install::status::{InstallOutcome, Milestone},
    removal_obstacles::stored_kind,
};

/// How many objects of a namespace are deleted before the namespace is looked at again.
const PAGE: u32 = 50;

/// When a namespace is looked at again that still has objects.
const LOOK: Duration = Duration::from_secs(1);

/// How a message lists objects.
const OBJECTS: Listing = Listing {
    most: 5,
    separator: "; ",
    way_to_rest: "",
};

/// A namespace that is being deleted.
pub(super) struct TerminatingNamespace {
    name: String,
    uid: String,
}

impl TerminatingNamespace {
    fn of(namespace: &Value) -> Option<Self> {
        let text = |pointer| object::text(namespace, pointer).map(str::to_owned);
        object::is_terminating(namespace).then_some(())?;
        Some(Self {
            name: text("/metadata/name")?,
            uid: text("/metadata/uid")?,
        })
    }
}

impl BundleReconciler {
    /// The namespaces that are being deleted.
    pub(super) async fn terminating_namespaces(&self) -> Result<Vec<TerminatingNamespace>, Halt> {
        let read = |namespace: Value| TerminatingNamespace::of(&namespace);
        Ok(self
            .context
            .cluster
            .list_as(&kinds::NAMESPACE, None, None, read)
            .await?)
    }

    /// Deletes the objects of a CRD in `namespaces`, which are being deleted, and halts until none is left there.
    pub(super) async fn empty_namespaces(
        &self,
        owner: &FieldOwner,
        crd: &Value,
        namespaces: &[TerminatingNamespace],
    ) -> Result<(), Halt> {
        if object::text(crd, "/spec/scope") != Some("Namespaced") {
            return Ok(());
        }
        let mut left = Vec::new();
        for namespace in namespaces {
            left.extend(self.empty(owner, crd, namespace).await?);
        }
        if left.is_empty() {
            return Ok(());
        }
        let kind = stored_kind(crd);
        let (group, version) = kind.group_version();
        let plural = object::text(crd, "/spec/names/plural").unwrap_or_default();
        let message = format!(
            "waiting for these to be deleted with their namespaces; to list them, run kubectl get -A {plural}.{version}.{group}: {}",
            OBJECTS.summarize(&left)
        );
        let outcome = InstallOutcome::waiting(Milestone::Armed, "NamespaceTerminating", message);
        Err(Halt::Later(outcome, LOOK))
    }

    /// Deletes a page of the objects of a CRD in a namespace, and says what was there.
    async fn empty(
        &self,
        owner: &FieldOwner,
        crd: &Value,
        namespace: &TerminatingNamespace,
    ) -> Result<Vec<String>, Halt> {
        let cluster = &self.context.cluster;
        let kind = stored_kind(crd);
        let page = match cluster.objects(&kind, Some(&namespace.name), PAGE, None).await {
            Ok(page) => page,
            Err(error @ RequestError::Refused { .. }) => {
                let what = format!("{} in {} ({})", kind.kind, namespace.name, chain(&error));
                return Ok(vec![what]);
            }
            Err(error) => return Err(error.into()),
        };
        if page.objects.is_empty() {
            return Ok(Vec::new());
        }
        let key = kinds::NAMESPACE.object(None, &namespace.name);
        let live = cluster.read(&key).await?;
        let live = live.as_ref().and_then(TerminatingNamespace::of);
        if live.is_none_or(|live| live.uid != namespace.uid) {
            // What was listed may be in a namespace that has come since.
            return Ok(vec![format!("{} in {}", kind.kind, namespace.name)]);
        }
        if !page.objects.iter().all(object::is_terminating) {
            self.grant(owner, crd, ObjectWork::NamespaceDeletion).await?;
        }
        let mut left = Vec::new();
        for stored in &page.objects {
            let Some(key) = ObjectKey::from_object(stored) else {
                continue;
            };
            if !object::is_terminating(stored) {
                match cluster.delete(&key, object::text(stored, "/metadata/uid")).await {
                    // API servers hear of what is granted, and authorizers may be others.
                    Err(error @ RequestError::Refused { .. }) => {
                        left.push(format!("{key} ({})", chain(&error)));
                        break;
                    }
                    deleted => deleted?,
                }
            }
            left.push(held_by(&key, stored));
        }
        Ok(left)
    }
}
