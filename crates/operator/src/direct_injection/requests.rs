//! Which targets ask for which sources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_cluster::Index;
use windlass_object::{InCluster, ObjectKey};
use windlass_trust::injection::{CaRequests, CaSource, CaSources, TargetKinds};

use super::observed_source::source_object;

/// Which targets ask for which objects of others. Kept up to date, so that no change makes anybody look at all targets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InjectionRequests {
    own_namespace: String,
    sources: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    targets: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

// === impl InjectionRequests ===

impl InjectionRequests {
    /// Nobody asks for anything.
    pub(super) fn none(own_namespace: &str) -> Self {
        Self {
            own_namespace: own_namespace.to_owned(),
            sources: BTreeMap::new(),
            targets: BTreeMap::new(),
        }
    }

    /// What all targets ask for; `see` sees each of them.
    pub(super) fn of_all(
        index: &Index,
        own_namespace: &str,
        mut see: impl FnMut(&ObjectKey, &Value),
    ) -> Self {
        let mut requests = Self::none(own_namespace);
        let (watches, kinds) = (index.target_watches(), index.target_kinds());
        for (key, target) in watches.iter().flat_map(|watch| index.indexed(&watch.kind)) {
            let target = target.read();
            requests.note(&key, Some(&target), &kinds);
            see(&key, &target);
        }
        requests
    }

    /// Notes what a target asks for as it is now, or that it is gone. The sources of which that is news.
    pub(super) fn note(
        &mut self,
        key: &ObjectKey,
        target: Option<&Value>,
        kinds: &TargetKinds,
    ) -> BTreeSet<ObjectKey> {
        let asked = target
            .map(|target| self.asked_by(key, target, kinds))
            .unwrap_or_default();
        let before = match asked.is_empty() {
            true => self.sources.remove(key).unwrap_or_default(),
            false => self
                .sources
                .insert(key.clone(), asked.clone())
                .unwrap_or_default(),
        };
        for source in before.difference(&asked) {
            if let Some(targets) = self.targets.get_mut(source) {
                targets.remove(key);
                if targets.is_empty() {
                    self.targets.remove(source);
                }
            }
        }
        for source in asked.difference(&before) {
            self.targets
                .entry(source.clone())
                .or_default()
                .insert(key.clone());
        }
        before.symmetric_difference(&asked).cloned().collect()
    }

    /// Whether a target asks for a source.
    pub(super) fn asks(&self, target: &ObjectKey) -> bool {
        self.sources.contains_key(target)
    }

    /// Whether any target asks for a source.
    pub(super) fn is_asked(&self, source: &ObjectKey) -> bool {
        self.targets.contains_key(source)
    }

    /// The targets that ask for a source.
    pub(super) fn targets(&self, source: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.targets.get(source).into_iter().flatten()
    }

    /// All targets that ask for a source.
    pub(super) fn all_targets(&self) -> impl Iterator<Item = &ObjectKey> {
        self.sources.keys()
    }

    /// All sources that are asked for.
    pub(super) fn all_sources(&self) -> impl Iterator<Item = &ObjectKey> {
        self.targets.keys()
    }

    fn asked_by(&self, key: &ObjectKey, target: &Value, kinds: &TargetKinds) -> BTreeSet<ObjectKey> {
        let requests = CaRequests::from_valid_annotations(target, kinds);
        let sets = requests.sets().into_iter();
        let sources = sets.filter(|set| is_given(set, key)).flatten();
        sources
            .filter_map(|source| source_object(source, &self.own_namespace))
            .collect()
    }
}

/// Why a target gets nothing that [is not given](is_given).
pub(super) const NOT_GIVEN: &str = "annotation windlass.dev/inject-apiserver-ca: not supported in the remote cluster; put the CA of its \
    API server into a Secret of the operator's cluster, and name that in windlass.dev/inject-ca-from-secret";

/// Whether a target can get what a set of sources gives: the API server that Windlass knows the CA of is that of the own cluster.
pub(super) fn is_given(set: &CaSources, target: &ObjectKey) -> bool {
    target.cluster == InCluster::Local || !set.contains(&CaSource::ApiServer)
}

/// The sets of sources of which Windlass issues none.
pub(super) fn foreign_sets(requests: &CaRequests) -> Vec<CaSources> {
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
    fn what_asks_for_the_api_servers_ca_in_the_remote_cluster_gets_nothing() {
        let annotations = json!({names::INJECT_API_SERVER_CA: "true"});
        let target = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "a", "annotations": annotations},
        });
        let key = kinds::API_SERVICE.object(None, "a");
        for (key, asks) in [(key.clone(), true), (key.in_cluster(InCluster::Remote), false)] {
            let mut requests = InjectionRequests::none("windlass-system");
            requests.note(&key, Some(&target), &TargetKinds::default());
            assert_eq!(requests.asks(&key), asks, "{key}");
            let secret = requests.all_sources().next();
            assert_eq!(
                secret.is_some_and(|source| source.cluster == InCluster::Local),
                asks
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_noted_of_changes_is_what_all_targets_ask_for(
            changes in prop::collection::vec(("[a-d]", prop::option::of(prop::option::of("[x-z](,n/[x-z])?"))), 0..30),
        ) {
            let index = Index::new();
            let watch = Watch::all(kinds::API_SERVICE);
            let mut requests = InjectionRequests::none("windlass-system");
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
                prop_assert!(before.is_empty(), "an APIService is no Secret");
                let kinds = index.target_kinds();
                requests.note(&key, target.as_ref(), &kinds);
                prop_assert_eq!(&requests, &InjectionRequests::of_all(&index, "windlass-system", |_, _| {}));
                prop_assert_eq!(requests.asks(&key), target.is_some_and(|target| !requests.asked_by(&key, &target, &kinds).is_empty()));
            }
        }
    }
}
