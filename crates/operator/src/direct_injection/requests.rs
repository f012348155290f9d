//! Which targets ask for which Secrets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_cluster::{Index, kinds};
use windlass_object::ObjectKey;
use windlass_trust::injection::CaSource;

use crate::injection::TARGET_KINDS;

/// Which targets ask for which Secrets. Kept up to date, so that no change makes anybody look at all targets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InjectionRequests {
    secrets: BTreeMap<ObjectKey, ObjectKey>,
    targets: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

// === impl InjectionRequests ===

impl InjectionRequests {
    /// What all targets ask for.
    pub(super) fn of_all(index: &Index) -> Self {
        let mut requests = Self::default();
        for target in TARGET_KINDS.iter().flat_map(|kind| index.objects(kind)) {
            if let Some(key) = ObjectKey::of(&target) {
                requests.note(&key, Some(&target));
            }
        }
        requests
    }

    /// Notes what a target asks for as it is now, or that it is gone. Says whether it asks for something else than before.
    pub(super) fn note(&mut self, key: &ObjectKey, target: Option<&Value>) -> bool {
        let secret = target.and_then(requested_secret);
        if self.secrets.get(key) == secret.as_ref() {
            return false;
        }
        let before = match &secret {
            Some(secret) => self.secrets.insert(key.clone(), secret.clone()),
            None => self.secrets.remove(key),
        };
        if let Some(before) = before
            && let Some(targets) = self.targets.get_mut(&before)
        {
            targets.remove(key);
            if targets.is_empty() {
                self.targets.remove(&before);
            }
        }
        if let Some(secret) = secret {
            self.targets.entry(secret).or_default().insert(key.clone());
        }
        true
    }

    /// Whether a target asks for a Secret.
    pub(super) fn asks(&self, target: &ObjectKey) -> bool {
        self.secrets.contains_key(target)
    }

    /// The targets that ask for a Secret.
    pub(super) fn targets(&self, secret: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.targets.get(secret).into_iter().flatten()
    }

    /// All targets that ask for a Secret.
    pub(super) fn all_targets(&self) -> impl Iterator<Item = &ObjectKey> {
        self.secrets.keys()
    }

    /// All Secrets that are asked for.
    pub(super) fn all_secrets(&self) -> impl Iterator<Item = &ObjectKey> {
        self.targets.keys()
    }
}

/// The Secret that a target asks for.
pub(super) fn requested_secret(target: &Value) -> Option<ObjectKey> {
    match CaSource::of(target) {
        Ok(Some(CaSource::Secret { namespace, name })) => Some(kinds::SECRET.object(Some(&namespace), &name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use windlass_cluster::watch::Watch;
    use windlass_object::names;

    use super::*;

    fn target(name: &str, secret: Option<&str>) -> Value {
        let annotations = secret.map(|secret| json!({ names::INJECT_CA_FROM_SECRET: format!("n/{secret}") }));
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": name, "annotations": annotations},
        })
    }

    proptest! {
        #[test]
        fn what_is_noted_of_changes_is_what_all_targets_ask_for(
            changes in prop::collection::vec(("[a-d]", prop::option::of(prop::option::of("[x-z]"))), 0..30),
        ) {
            let index = Index::new();
            let watch = Watch::all(kinds::API_SERVICE);
            let mut requests = InjectionRequests::default();
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
                requests.note(&key, target.as_ref());
                prop_assert_eq!(&requests, &InjectionRequests::of_all(&index));
                prop_assert_eq!(requests.asks(&key), target.as_ref().and_then(requested_secret).is_some());
            }
        }
    }
}
