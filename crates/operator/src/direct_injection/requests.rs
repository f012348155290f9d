//! Index of the targets that request each source.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_cluster::Index;
use windlass_object::{InCluster, ObjectKey};
use windlass_trust::injection::{CaRequests, CaSource, CaSources, TargetKinds};

use super::observed_source::source_object;

/// Which targets request which objects that Windlass does not issue. Updated incrementally, so that a change
/// does not require reading all targets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InjectionRequests {
    own_namespace: String,
    sources: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    targets: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl InjectionRequests {
    /// Creates an empty index.
    pub(super) fn new(own_namespace: &str) -> Self {
        Self {
            own_namespace: own_namespace.to_owned(),
            sources: BTreeMap::new(),
            targets: BTreeMap::new(),
        }
    }

    /// Creates the index of all targets. Calls `visit` for each.
    pub(super) fn from_index(
        index: &Index,
        own_namespace: &str,
        mut visit: impl FnMut(&ObjectKey, &Value),
    ) -> Self {
        let mut requests = Self::new(own_namespace);
        let (watches, kinds) = (index.target_watches(), index.target_kinds());
        for (key, target) in watches.iter().flat_map(|watch| index.indexed(&watch.kind)) {
            let target = target.read();
            requests.update(&key, Some(&target), &kinds);
            visit(&key, &target);
        }
        requests
    }

    /// Updates the index for a changed or deleted target. Returns the sources that it newly requests or no
    /// longer requests.
    pub(super) fn update(
        &mut self,
        key: &ObjectKey,
        target: Option<&Value>,
        kinds: &TargetKinds,
    ) -> BTreeSet<ObjectKey> {
        let requested = target
            .map(|target| self.requested_sources(key, target, kinds))
            .unwrap_or_default();
        let before = match requested.is_empty() {
            true => self.sources.remove(key).unwrap_or_default(),
            false => self
                .sources
                .insert(key.clone(), requested.clone())
                .unwrap_or_default(),
        };
        for source in before.difference(&requested) {
            if let Some(targets) = self.targets.get_mut(source) {
                targets.remove(key);
                if targets.is_empty() {
                    self.targets.remove(source);
                }
            }
        }
        for source in requested.difference(&before) {
            self.targets
                .entry(source.clone())
                .or_default()
                .insert(key.clone());
        }
        before.symmetric_difference(&requested).cloned().collect()
    }

    /// Reports whether a target requests any source.
    pub(super) fn has_requests(&self, target: &ObjectKey) -> bool {
        self.sources.contains_key(target)
    }

    /// Reports whether any target requests a source.
    pub(super) fn is_requested(&self, source: &ObjectKey) -> bool {
        self.targets.contains_key(source)
    }

    /// Returns the targets that request a source.
    pub(super) fn targets(&self, source: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.targets.get(source).into_iter().flatten()
    }

    /// Returns all targets that request a source.
    pub(super) fn all_targets(&self) -> impl Iterator<Item = &ObjectKey> {
        self.sources.keys()
    }

    /// Returns all requested sources.
    pub(super) fn all_sources(&self) -> impl Iterator<Item = &ObjectKey> {
        self.targets.keys()
    }

    fn requested_sources(&self, key: &ObjectKey, target: &Value, kinds: &TargetKinds) -> BTreeSet<ObjectKey> {
        let requests = CaRequests::from_valid_annotations(target, kinds);
        let sets = requests.sets().into_iter();
        let sources = sets.filter(|set| is_available(set, key)).flatten();
        sources
            .filter_map(|source| source_object(source, &self.own_namespace))
            .collect()
    }
}

/// Message for a target that requests an [unavailable](is_available) source.
pub(super) const API_SERVER_CA_UNAVAILABLE: &str = "annotation windlass.dev/inject-apiserver-ca: not supported in the remote cluster; put the CA of its API server into a Secret of the operator's cluster, and name that Secret in windlass.dev/inject-ca-from-secret";

/// Reports whether a set of sources is available to a target. Windlass knows only the CA of the local
/// cluster's API server.
pub(super) fn is_available(set: &CaSources, target: &ObjectKey) -> bool {
    target.cluster == InCluster::Local || !set.contains(&CaSource::ApiServer)
}

/// Returns the sets of sources without any that Windlass issues.
pub(super) fn external_sets(requests: &CaRequests) -> Vec<CaSources> {
    let is_foreign = |set: &&CaSources| {
        !set.iter()
            .any(|source| matches!(source, CaSource::ServingCertificate { .. }))
    };
    requests.sets().into_iter().filter(is_foreign).cloned().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use windlass_cluster::{kinds, watch::Watch};
    use windlass_object::names;

    use super::*;

    fn target(name: &str, secret: Option<&str>) -> Value {
        let annotations = secret.map(|secret| json!({ names::INJECT_CA_FROM_SECRET: format!("n/{secret}") }));
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": name, "annotations": annotations},
        })
    }

    #[test]
    fn remote_targets_cannot_request_the_api_servers_ca() {
        let annotations = json!({names::INJECT_API_SERVER_CA: "true"});
        let target = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "a", "annotations": annotations},
        });
        let key = kinds::API_SERVICE.object(None, "a");
        for (key, expected) in [(key.clone(), true), (key.in_cluster(InCluster::Remote), false)] {
            let mut requests = InjectionRequests::new("windlass-system");
            requests.update(&key, Some(&target), &TargetKinds::default());
            assert_eq!(requests.has_requests(&key), expected, "{key}");
            let secret = requests.all_sources().next();
            assert_eq!(
                secret.is_some_and(|source| source.cluster == InCluster::Local),
                expected
            );
        }
    }

    proptest! {
        #[test]
        fn incremental_updates_match_a_full_index(
            changes in prop::collection::vec(("[a-d]", prop::option::of(prop::option::of("[x-z](,n/[x-z])?"))), 0..30),
        ) {
            let index = Index::new();
            let watch = Watch::all(kinds::API_SERVICE);
            let mut requests = InjectionRequests::new("windlass-system");
            for (name, change) in changes {
                let key = kinds::API_SERVICE.object(None, &name);
                let target = change.map(|secret| target(&name, secret.as_deref()));
                match &target {
                    Some(target) => {
                        index.apply(&watch, target.clone());
                    }
                    None => {
                        index.delete(&watch, &key);
                    }
                }
                let before: Vec<_> = requests.targets(&key).cloned().collect();
                prop_assert!(before.is_empty(), "an APIService is not a source");
                let kinds = index.target_kinds();
                requests.update(&key, target.as_ref(), &kinds);
                prop_assert_eq!(&requests, &InjectionRequests::from_index(&index, "windlass-system", |_, _| {}));
                prop_assert_eq!(requests.has_requests(&key), target.is_some_and(|target| !requests.requested_sources(&key, &target, &kinds).is_empty()));
            }
        }
    }
}
