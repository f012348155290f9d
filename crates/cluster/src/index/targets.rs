//! Targets in the index.

use std::sync::Arc;

use tokio::sync::watch;
use windlass_object::{InCluster, ca_injectors::CaInjectors};
use windlass_trust::injection::{CaSource, KINDS, TargetKind, TargetKinds};

use super::{Index, with_key};
use crate::{
    injection_targets,
    kind::{Kind, kinds},
    relation::Relation,
    watch::Watch,
    watch_store::SeenObjects,
};

impl Index {
    /// Creates an empty index in which the annotations of these injectors, which Windlass replaces, define
    /// targets, too.
    pub fn with_replaced_injectors(answered: CaInjectors) -> Self {
        let kinds = TargetKinds::default().with_replaced_injectors(answered);
        Self {
            target_kinds: watch::Sender::new(Arc::new(kinds)),
            ..Self::new()
        }
    }

    /// Sets the injectors that are running. Reports whether they have changed.
    pub fn set_running_injectors(&self, injectors: CaInjectors) -> bool {
        self.edit_target_kinds(|known| known.with_running_injectors(injectors))
    }

    /// Returns the kinds of targets: the built-in ones and those that InjectionTargets add.
    pub fn target_kinds(&self) -> Arc<TargetKinds> {
        self.target_kinds.borrow().clone()
    }

    /// Returns a receiver that changes with the kinds of targets and the replaced injectors.
    pub fn target_kinds_changes(&self) -> watch::Receiver<Arc<TargetKinds>> {
        self.target_kinds.subscribe()
    }

    /// Reports whether objects of a kind, in this version, are targets. InjectionTargets add kinds of the
    /// local cluster only.
    pub fn is_target(&self, kind: &Kind) -> bool {
        let (group, _) = kind.group_version();
        let kinds = self.target_kinds();
        let target = match kind.cluster {
            InCluster::Local => kinds.find(group, &kind.kind),
            InCluster::Remote => KINDS.iter().find(|target| target.is(group, &kind.kind)),
        };
        let own = kind.clone().in_cluster(InCluster::Local);
        target.is_some_and(|target| Kind::versions_of(target).any(|version| version == own))
    }

    /// Returns all watches of targets.
    pub fn target_watches(&self) -> Vec<Watch> {
        let kinds = self.target_kinds();
        kinds
            .all()
            .flat_map(Watch::for_target)
            .chain(Watch::for_remote_targets())
            .collect()
    }

    /// Waits until the target definition of a kind differs from `known`.
    pub(crate) async fn target_changed(&self, kind: &Kind, known: Option<&TargetKind>) {
        let (group, _) = kind.group_version();
        let mut kinds = self.target_kinds.subscribe();
        // The sender is owned by this index.
        let _ = kinds
            .wait_for(|kinds| kinds.find(group, &kind.kind) != known)
            .await;
    }

    /// Returns the objects of any kind that request the trust bundle of `source`.
    pub fn targets(&self, source: &CaSource) -> SeenObjects {
        let relation = Relation::Target(source.clone());
        let shelves = self.shelves.read();
        let related = shelves.values().flat_map(|shelf| shelf.related(&relation));
        related.map(|(key, target)| with_key(key, target)).collect()
    }

    /// Updates the kinds that InjectionTargets add, before the change is published.
    pub(super) fn update_target_kinds(&self, watch: &Watch) {
        if watch.kind != kinds::INJECTION_TARGET {
            return;
        }
        let added = injection_targets::added_kinds(&self.objects(&kinds::INJECTION_TARGET));
        self.edit_target_kinds(|known| known.with_added(added));
    }

    fn edit_target_kinds(&self, edit: impl FnOnce(TargetKinds) -> TargetKinds) -> bool {
        self.target_kinds.send_if_modified(|known| {
            let edited = edit(TargetKinds::clone(known));
            let is_other = **known != edited;
            if is_other {
                *known = Arc::new(edited);
            }
            is_other
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn injection_target(path: &str) -> Value {
        json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "InjectionTarget", "metadata": {"name": "gateways"},
            "spec": {"group": "example.com", "version": "v1", "kind": "Gateway", "plural": "gateways", "paths": [{"path": path}]},
        })
    }

    #[tokio::test]
    async fn an_injection_target_adds_its_kind_while_it_exists() {
        let index = Index::new();
        let watch = Watch::all(kinds::INJECTION_TARGET);
        let gateways = Kind::new("example.com/v1", "Gateway");
        let mut changes = index.subscribe();
        assert!(!index.is_target(&gateways));
        index.apply(&watch, injection_target("/spec/caBundle"));
        assert!(changes.try_recv().is_ok() && index.is_target(&gateways));
        assert!(index.target_watches().iter().any(|watch| watch.kind == gateways));
        assert!(!index.is_target(&Kind::new("example.com/v2", "Gateway")));
        let gateway = json!({
            "apiVersion": "example.com/v1", "kind": "Gateway",
            "metadata": {"name": "g", "annotations": {"windlass.dev/inject-ca-from": "n/hook"}},
        });
        index.apply(&Watch::all(gateways.clone()), gateway);
        let source = CaSource::ServingCertificate {
            namespace: "n".to_owned(),
            name: "hook".to_owned(),
        };
        assert_eq!(index.targets(&source).len(), 1);

        let known = index.target_kinds();
        let known = known.find("example.com", "Gateway");
        let changed = index.target_changed(&gateways, known);
        tokio::pin!(changed);
        assert!(futures::poll!(&mut changed).is_pending());
        index.apply(&watch, injection_target("/spec/tls/caBundle"));
        assert!(futures::poll!(&mut changed).is_ready(), "at other paths");
        index.begin_relist(&watch);
        index.finish_relist(&watch);
        assert!(!index.is_target(&gateways), "the InjectionTarget is deleted");
    }
}
