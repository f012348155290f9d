//! The objects of a single watch.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_object::ObjectKey;

use crate::{IndexedObject, relation::Relation};

/// Index entries by key.
pub type SeenObjects = BTreeMap<ObjectKey, IndexedObject>;

/// The objects of a single watch.
#[derive(Debug, Default)]
pub(crate) struct WatchStore {
    objects: SeenObjects,
    related: HashMap<Relation, BTreeSet<ObjectKey>>,
    /// The objects of an incomplete relist, which replace all objects when it is complete.
    pub(crate) relisted: SeenObjects,
    pub(crate) is_complete: bool,
    /// The kind is not served.
    pub(crate) is_absent: bool,
}

/// Objects of a store, with their keys.
pub(crate) type Found<'s> = Box<dyn Iterator<Item = (&'s ObjectKey, &'s IndexedObject)> + 's>;

impl WatchStore {
    pub(crate) fn objects(&self) -> &SeenObjects {
        &self.objects
    }

    /// Returns the objects with a relation.
    pub(crate) fn related(&self, relation: &Relation) -> Found<'_> {
        let keys = self.related.get(relation).into_iter().flatten();
        Box::new(keys.filter_map(|key| self.objects.get_key_value(key)))
    }

    /// Returns the objects in the namespace of `first`, which sorts before all of them; or the cluster-scoped
    /// ones.
    pub(crate) fn within<'s>(&'s self, first: &ObjectKey) -> Found<'s> {
        let namespace = first.namespace.clone();
        let objects = self.objects.range(first..);
        Box::new(objects.take_while(move |(key, _)| key.namespace == namespace))
    }

    /// Inserts an object, and returns the previous one.
    pub(crate) fn insert(&mut self, key: ObjectKey, object: IndexedObject) -> Option<IndexedObject> {
        let before = self.remove(&key);
        for relation in object.relations() {
            self.related
                .entry(relation.clone())
                .or_default()
                .insert(key.clone());
        }
        self.objects.insert(key, object);
        before
    }

    /// Removes an object, and returns it.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<IndexedObject> {
        let before = self.objects.remove(key)?;
        for relation in before.relations() {
            let Some(related) = self.related.get_mut(relation) else {
                continue;
            };
            related.remove(key);
            if related.is_empty() {
                self.related.remove(relation);
            }
        }
        Some(before)
    }

    /// Replaces all objects by those of the relist, and returns the previous ones.
    pub(crate) fn finish_relist(&mut self) -> SeenObjects {
        let relisted = std::mem::take(&mut self.relisted);
        let before = std::mem::take(&mut self.objects);
        self.related.clear();
        for (key, object) in relisted {
            self.insert(key, object);
        }
        self.is_complete = true;
        before
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_object::names::{INJECT_CA_FROM, INJECT_CA_FROM_SECRET};
    use windlass_trust::injection::{CaSource, Consent};

    use super::*;
    use crate::{kind::kinds, relation::SERVICE_NAME};

    fn slice(name: &str, service: &str) -> (ObjectKey, IndexedObject) {
        let kind = kinds::ENDPOINT_SLICE;
        let slice = json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": {"namespace": "n", "name": name, "labels": {SERVICE_NAME: service}},
        });
        (kind.object(Some("n"), name), slice.into())
    }

    fn target(name: &str, annotation: &str, of: &str) -> (ObjectKey, IndexedObject) {
        let kind = kinds::API_SERVICE;
        let target = json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": {"name": name, "annotations": {annotation: of}},
        });
        (kind.object(None, name), target.into())
    }

    fn names(shelf: &WatchStore, relation: &Relation) -> Vec<String> {
        let related = shelf.related(relation);
        related.map(|(key, _)| key.name.clone()).collect()
    }

    fn slices(shelf: &WatchStore, namespace: &str, service: &str) -> Vec<String> {
        names(
            shelf,
            &Relation::Endpoints(namespace.to_owned(), service.to_owned()),
        )
    }

    #[test]
    fn slices_are_found_by_their_service() {
        let mut shelf = WatchStore::default();
        for (name, service) in [("1", "a"), ("2", "a"), ("3", "b")] {
            let (key, slice) = slice(name, service);
            shelf.insert(key, slice);
        }
        assert_eq!(slices(&shelf, "n", "a"), ["1", "2"]);
        assert_eq!(slices(&shelf, "m", "a"), [""; 0]);
        let (key, moved) = slice("2", "b");
        shelf.insert(key.clone(), moved);
        assert_eq!(slices(&shelf, "n", "a"), ["1"]);
        assert_eq!(slices(&shelf, "n", "b"), ["2", "3"]);
        shelf.remove(&key);
        assert_eq!(slices(&shelf, "n", "b"), ["3"]);
        shelf.relisted.extend([slice("4", "b")]);
        shelf.finish_relist();
        assert_eq!(slices(&shelf, "n", "b"), ["4"]);
        assert_eq!(slices(&shelf, "n", "a"), [""; 0]);
        let (key, _) = slice("4", "b");
        shelf.remove(&key);
        assert!(shelf.related.is_empty());
    }

    #[test]
    fn targets_are_found_by_their_trust_bundle() {
        let mut shelf = WatchStore::default();
        for (name, annotation, of) in [
            ("1", INJECT_CA_FROM, "n/a"),
            ("2", INJECT_CA_FROM_SECRET, "n/a"),
            ("3", INJECT_CA_FROM, "n/b"),
            ("4", "example.com/other", "n/a"),
        ] {
            let (key, target) = target(name, annotation, of);
            shelf.insert(key, target);
        }
        let (namespace, name) = ("n".to_owned(), "a".to_owned());
        let certificate = CaSource::ServingCertificate {
            namespace: namespace.clone(),
            name: name.clone(),
        };
        assert_eq!(names(&shelf, &Relation::Target(certificate)), ["1"]);
        let secret = CaSource::Secret {
            namespace,
            name,
            consent: Consent::Windlass,
        };
        assert_eq!(names(&shelf, &Relation::Target(secret)), ["2"]);
    }

    #[test]
    fn objects_are_found_by_their_namespace() {
        let mut shelf = WatchStore::default();
        let service = |namespace: Option<&str>, name: &str| {
            let key = kinds::SERVICE.object(namespace, name);
            let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": name}});
            (key, IndexedObject::from(service))
        };
        for (namespace, name) in [("a", "1"), ("b", "2"), ("b", "3"), ("ba", "4"), ("c", "5")] {
            let (key, service) = service(Some(namespace), name);
            shelf.insert(key, service);
        }
        let names = |namespace| -> Vec<_> {
            let objects = shelf.within(&kinds::SERVICE.object(namespace, ""));
            objects.map(|(key, _)| key.name.clone()).collect()
        };
        assert_eq!(names(Some("b")), ["2", "3"]);
        assert_eq!(names(Some("d")), [""; 0]);
        assert_eq!(names(None), [""; 0]);
    }
}
