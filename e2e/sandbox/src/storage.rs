//! Objects, resource versions and watches.
//!
//! One counter numbers every change of every object. Watches read from a bounded log of changes; a watch from
//! before the start of the log fails with [`Expired`].

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// How many changes the log keeps.
const REMEMBERED: usize = 20_000;

/// The key of a stored object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageKey {
    /// The API group; empty for core.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// The objects of a resource in one namespace or in all.
#[derive(Clone, Copy, Debug)]
pub struct Collection<'a> {
    /// The API group; empty for core.
    pub group: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The namespace; `None` for all.
    pub namespace: Option<&'a str>,
}

/// The type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// The object was created.
    Added,
    /// The object was updated.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Event {
    /// The change's number.
    pub revision: u64,
    /// The type of the change.
    pub change: EventType,
    /// The key of the object.
    pub key: StorageKey,
    /// The object after the change; for a deletion, its last state with the number of this change.
    pub object: Arc<Value>,
    /// The object before the change.
    pub previous: Option<Arc<Value>>,
}

/// The object has changed since the writer read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

/// The log no longer contains all requested changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The oldest revision from which changes can be read.
    pub oldest: u64,
}

/// Every object of the cluster.
pub struct Store {
    inner: Mutex<Inner>,
    revision: watch::Sender<u64>,
}

struct Inner {
    revision: u64,
    objects: BTreeMap<StorageKey, Arc<Value>>,
    log: VecDeque<Event>,
    forgotten: u64,
}

impl Collection<'_> {
    /// Reports whether the collection contains an object.
    pub fn contains(&self, key: &StorageKey) -> bool {
        key.group == self.group
            && key.resource == self.resource
            && self.namespace.is_none_or(|namespace| namespace == key.namespace)
    }
}

impl Default for Store {
    fn default() -> Self {
        // The first objects of the real server have numbers of some hundreds; 0 and 1 have special meanings.
        let revision = 100;
        Self {
            inner: Mutex::new(Inner {
                revision,
                objects: BTreeMap::new(),
                log: VecDeque::new(),
                forgotten: revision,
            }),
            revision: watch::Sender::new(revision),
        }
    }
}

impl Store {
    /// Returns the number of the last change.
    pub fn revision(&self) -> u64 {
        self.inner.lock().revision
    }

    /// Returns a receiver that yields the number of each change.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Returns one object.
    pub fn read(&self, key: &StorageKey) -> Option<Arc<Value>> {
        self.inner.lock().objects.get(key).cloned()
    }

    /// Returns the objects of a collection, sorted by name, and the number of the last change.
    pub fn list(&self, collection: Collection<'_>) -> (Vec<(StorageKey, Arc<Value>)>, u64) {
        let inner = self.inner.lock();
        let first = StorageKey {
            group: collection.group.to_owned(),
            resource: collection.resource.to_owned(),
            namespace: collection.namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        let found = inner
            .objects
            .range(first..)
            .take_while(|(key, _)| collection.contains(key))
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect();
        (found, inner.revision)
    }

    /// Returns every object of the cluster.
    pub fn all_objects(&self) -> Vec<(StorageKey, Arc<Value>)> {
        let inner = self.inner.lock();
        inner
            .objects
            .iter()
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect()
    }

    /// Stores a new object and returns it with its resourceVersion.
    ///
    /// # Errors
    ///
    /// When an object with this key exists.
    pub fn create(&self, key: StorageKey, object: Value) -> Result<Arc<Value>, Stale> {
        self.write(key, object, None)
    }

    /// Replaces an object if its resourceVersion is `revision`.
    ///
    /// # Errors
    ///
    /// When it has changed or was deleted.
    pub fn replace(&self, key: StorageKey, object: Value, revision: &str) -> Result<Arc<Value>, Stale> {
        self.write(key, object, Some(revision))
    }

    fn write(&self, key: StorageKey, mut object: Value, expected: Option<&str>) -> Result<Arc<Value>, Stale> {
        let mut inner = self.inner.lock();
        let previous = inner.objects.get(&key).cloned();
        if previous.as_deref().map(version) != expected {
            return Err(Stale);
        }
        let revision = inner.revision + 1;
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        let object = Arc::new(object);
        inner.objects.insert(key.clone(), object.clone());
        let change = if previous.is_some() {
            EventType::Modified
        } else {
            EventType::Added
        };
        inner.record(Event {
            revision,
            change,
            key,
            object: object.clone(),
            previous,
        });
        self.revision.send_replace(revision);
        Ok(object)
    }

    /// Removes an object if its resourceVersion is `revision`, and returns it as watchers receive it.
    ///
    /// # Errors
    ///
    /// When it has changed or was deleted.
    pub fn remove(&self, key: &StorageKey, revision: &str) -> Result<Arc<Value>, Stale> {
        let mut inner = self.inner.lock();
        if inner.objects.get(key).map(|object| version(object)) != Some(revision) {
            return Err(Stale);
        }
        let previous = inner.objects.remove(key);
        let revision = inner.revision + 1;
        let mut last = previous.as_deref().cloned().unwrap_or_default();
        last["metadata"]["resourceVersion"] = json!(revision.to_string());
        let last = Arc::new(last);
        inner.record(Event {
            revision,
            change: EventType::Deleted,
            key: key.clone(),
            object: last.clone(),
            previous,
        });
        self.revision.send_replace(revision);
        Ok(last)
    }

    /// Returns the changes of a collection after `revision`, and the number of the last change that was
    /// considered.
    ///
    /// # Errors
    ///
    /// When the log no longer contains all of them.
    pub fn since(&self, revision: u64, collection: Collection<'_>) -> Result<(Vec<Event>, u64), Expired> {
        let inner = self.inner.lock();
        if revision < inner.forgotten {
            return Err(Expired {
                oldest: inner.forgotten,
            });
        }
        let first = inner.log.partition_point(|event| event.revision <= revision);
        let found = inner
            .log
            .range(first..)
            .filter(|event| collection.contains(&event.key))
            .cloned();
        Ok((found.collect(), inner.revision))
    }

    /// Discards all changes so far, like a compaction of etcd.
    pub fn compact(&self) {
        let mut inner = self.inner.lock();
        inner.forgotten = inner.revision;
        inner.log.clear();
    }
}

impl Inner {
    fn record(&mut self, event: Event) {
        self.revision = event.revision;
        self.log.push_back(event);
        if self.log.len() > REMEMBERED
            && let Some(oldest) = self.log.pop_front()
        {
            self.forgotten = oldest.revision;
        }
    }
}

/// Returns `metadata.resourceVersion`; empty when it is absent.
pub fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THINGS: Collection<'static> = Collection {
        group: "g",
        resource: "things",
        namespace: None,
    };

    fn key(namespace: &str, name: &str) -> StorageKey {
        StorageKey {
            group: "g".into(),
            resource: "things".into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn a_stale_write_fails_and_changes_nothing() {
        let store = Store::default();
        let first = store.create(key("a", "x"), json!({"metadata": {}})).unwrap();
        assert_eq!(store.create(key("a", "x"), json!({"metadata": {}})), Err(Stale));
        store
            .replace(key("a", "x"), json!({"metadata": {}, "n": 1}), version(&first))
            .unwrap();
        let before = store.revision();
        assert_eq!(
            store.replace(key("a", "x"), json!({"metadata": {}}), version(&first)),
            Err(Stale)
        );
        assert_eq!(store.remove(&key("a", "x"), version(&first)), Err(Stale));
        assert_eq!(store.revision(), before);
        assert_eq!(store.read(&key("a", "x")).unwrap()["n"], 1);
    }

    #[test]
    fn changes_after_a_revision_are_returned_in_order() {
        let store = Store::default();
        let start = store.revision();
        let first = store.create(key("a", "x"), json!({"metadata": {}})).unwrap();
        store.create(key("b", "y"), json!({"metadata": {}})).unwrap();
        let last = store.remove(&key("a", "x"), version(&first)).unwrap();
        let (events, upto) = store.since(start, THINGS).unwrap();
        let seen: Vec<_> = events
            .iter()
            .map(|event| (event.change, event.key.name.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                (EventType::Added, "x"),
                (EventType::Added, "y"),
                (EventType::Deleted, "x")
            ]
        );
        assert_eq!(
            version(&last),
            upto.to_string(),
            "a DELETED event carries a newer number"
        );
        let only_b = Collection {
            namespace: Some("b"),
            ..THINGS
        };
        assert_eq!(store.since(start, only_b).unwrap().0.len(), 1);
        store.compact();
        assert_eq!(store.since(start, THINGS).unwrap_err(), Expired { oldest: upto });
        assert!(store.since(upto, THINGS).is_ok());
    }
}
