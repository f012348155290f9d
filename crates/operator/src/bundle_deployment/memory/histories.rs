//! What the watches have shown of storage versions, generation by generation.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;
use windlass_cluster::{Change, Index, Kind, kinds};
use windlass_crd::storage_migration::StorageVersionHistory;
use windlass_object::object;

/// How long each storage version is known to be one, by CustomResourceDefinition.
///
/// A process that has just started knows it from the generation on that it finds.
#[derive(Debug, Default)]
pub(in crate::bundle_deployment) struct StorageVersionHistories(
    Mutex<HashMap<String, StorageVersionHistory>>,
);

impl StorageVersionHistories {
    /// Takes note of a change. Each has to come here, in order.
    pub(in crate::bundle_deployment) fn see(&self, change: &Change) {
        if Kind::from_key(&change.key) != kinds::CUSTOM_RESOURCE_DEFINITION {
            return;
        }
        match &change.after {
            Some(crd) => self.observe_crd(&change.key.name, &crd.read()),
            None => drop(self.0.lock().remove(&change.key.name)),
        }
    }

    /// Takes note of everything as it is, where changes were missed or none have come yet.
    pub(in crate::bundle_deployment) fn see_all(&self, index: &Index) {
        for crd in index.objects(&kinds::CUSTOM_RESOURCE_DEFINITION) {
            if let Some(name) = object::text(&crd, "/metadata/name") {
                self.observe_crd(name, &crd);
            }
        }
    }

    /// What is known of one.
    pub(in crate::bundle_deployment) fn find(&self, crd: &str) -> Option<StorageVersionHistory> {
        self.0.lock().get(crd).cloned()
    }

    fn observe_crd(&self, name: &str, crd: &Value) {
        let mut histories = self.0.lock();
        match (StorageVersionHistory::from_crd(crd), histories.get_mut(name)) {
            (Some(seen), Some(known)) => known.record(seen),
            (Some(seen), None) => drop(histories.insert(name.to_owned(), seen)),
            (None, _) => drop(histories.remove(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use windlass_cluster::watch::Watch;
    use windlass_object::ObjectKey;

    fn crd(generation: i64, storage: &str) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com", "uid": "u", "generation": generation},
            "spec": {"versions": [{"name": storage, "storage": true}]},
        })
    }

    fn change(after: Value) -> Change {
        Change {
            key: ObjectKey::from_object(&after).unwrap(),
            before: None,
            after: Some(after.into()),
        }
    }

    #[test]
    fn every_change_counts_and_what_was_missed_ends_a_tenure() {
        let (histories, index) = (StorageVersionHistories::default(), Index::new());
        let watch = Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION);
        index.apply(&watch, crd(3, "v2"));
        histories.see_all(&index);
        for generation in [4, 5] {
            histories.see(&change(crd(generation, "v2")));
        }
        let known = histories.find("widgets.example.com").unwrap();
        let mut from_the_start = StorageVersionHistory::from_crd(&crd(3, "v2")).unwrap();
        from_the_start.record(StorageVersionHistory::from_crd(&crd(4, "v2")).unwrap());
        from_the_start.record(StorageVersionHistory::from_crd(&crd(5, "v2")).unwrap());
        assert_eq!(known, from_the_start);

        index.apply(&watch, crd(8, "v2"));
        histories.see_all(&index);
        let anew = StorageVersionHistory::from_crd(&crd(8, "v2"));
        assert_eq!(histories.find("widgets.example.com"), anew);
        let gone = Change {
            after: None,
            ..change(crd(8, "v2"))
        };
        histories.see(&gone);
        assert_eq!(histories.find("widgets.example.com"), None);
    }
}
