//! What one watch has seen.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde_json::Value;
use windlass_object::{ObjectKey, object};

use crate::kind::kinds;

/// Label on EndpointSlices: their Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Objects by their keys.
pub(crate) type SeenObjects = BTreeMap<ObjectKey, Arc<Value>>;

/// What one watch has seen.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    objects: SeenObjects,
    /// The EndpointSlices among the objects, by the Service that they are of: a cluster has many.
    slices: HashMap<ServiceName, BTreeSet<ObjectKey>>,
    /// What a relist has brought so far; it replaces the objects as a whole when it is complete.
    pub(crate) relisted: SeenObjects,
    pub(crate) is_complete: bool,
    /// The kind is not served.
    pub(crate) is_absent: bool,
}

/// A Service by its namespace and its name.
type ServiceName = (String, String);

// === impl Shelf ===

impl Shelf {
    pub(crate) fn objects(&self) -> &SeenObjects {
        &self.objects
    }

    /// The EndpointSlices of a Service.
    pub(crate) fn slices(&self, namespace: &str, service: &str) -> impl Iterator<Item = &Arc<Value>> {
        let of = (namespace.to_owned(), service.to_owned());
        let keys = self.slices.get(&of).into_iter().flatten();
        keys.filter_map(|key| self.objects.get(key))
    }

    /// Puts an object in the place of the one with its key, which it returns.
    pub(crate) fn insert(&mut self, key: ObjectKey, object: Arc<Value>) -> Option<Arc<Value>> {
        let before = self.remove(&key);
        if let Some(service) = service_of(&object) {
            self.slices.entry(service).or_default().insert(key.clone());
        }
        self.objects.insert(key, object);
        before
    }

    /// Takes an object away, and returns it.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        if let Some(service) = service_of(&before)
            && let Some(slices) = self.slices.get_mut(&service)
        {
            slices.remove(key);
            if slices.is_empty() {
                self.slices.remove(&service);
            }
        }
        Some(before)
    }

    /// Puts what a relist has brought in the place of all objects, which it returns.
    pub(crate) fn finish_relist(&mut self) -> SeenObjects {
        let relisted = std::mem::take(&mut self.relisted);
        let before = std::mem::take(&mut self.objects);
        self.slices.clear();
        for (key, object) in relisted {
            self.insert(key, object);
        }
        self.is_complete = true;
        before
    }
}

/// The Service that an EndpointSlice is of; `None` for any other object.
fn service_of(object: &Value) -> Option<ServiceName> {
    let is_slice = object::text(object, "/kind") == Some(&*kinds::ENDPOINT_SLICE.kind);
    let service = object::label(object, SERVICE_NAME).filter(|_| is_slice)?;
    let namespace = object::text(object, "/metadata/namespace")?;
    Some((namespace.to_owned(), service.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(name: &str, service: &str) -> (ObjectKey, Arc<Value>) {
        let kind = kinds::ENDPOINT_SLICE;
        let slice = json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": {"namespace": "n", "name": name, "labels": {SERVICE_NAME: service}},
        });
        (kind.object(Some("n"), name), Arc::new(slice))
    }

    fn names(shelf: &Shelf, namespace: &str, service: &str) -> Vec<String> {
        let slices = shelf.slices(namespace, service);
        slices
            .map(|slice| slice["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn slices_are_found_by_their_service_as_they_come_change_and_go() {
        let mut shelf = Shelf::default();
        for (name, service) in [("1", "a"), ("2", "a"), ("3", "b")] {
            let (key, slice) = slice(name, service);
            shelf.insert(key, slice);
        }
        assert_eq!(names(&shelf, "n", "a"), ["1", "2"]);
        assert_eq!(names(&shelf, "m", "a"), [""; 0]);
        let (key, moved) = slice("2", "b");
        shelf.insert(key.clone(), moved);
        assert_eq!(names(&shelf, "n", "a"), ["1"]);
        assert_eq!(names(&shelf, "n", "b"), ["2", "3"]);
        shelf.remove(&key);
        assert_eq!(names(&shelf, "n", "b"), ["3"]);
        shelf.relisted.extend([slice("4", "b")]);
        shelf.finish_relist();
        assert_eq!(names(&shelf, "n", "b"), ["4"]);
        assert_eq!(names(&shelf, "n", "a"), [""; 0]);
        let (key, _) = slice("4", "b");
        shelf.remove(&key);
        assert!(shelf.slices.is_empty());
    }
}
