//! The index of all watched objects, which every controller reads.
//!
//! Watches of one kind may overlap (Secrets by label and Secrets by name): each has its own store, and
//! lookups search all stores of the kind.

mod targets;

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::{broadcast, watch};
use windlass_object::ObjectKey;
use windlass_trust::injection::TargetKinds;

use crate::{
    Change, IndexedObject,
    change::{ChangedObject, difference},
    kind::{Kind, kinds},
    relation::Relation,
    trim::is_whole,
    watch::Watch,
    watch_store::{Found, SeenObjects, WatchStore},
};

/// The latest state of all watched objects, with lookups by relation.
pub struct Index {
    shelves: RwLock<BTreeMap<Watch, WatchStore>>,
    changes: broadcast::Sender<Change>,
    /// Notifies when a watch completes its list or ends.
    progress: watch::Sender<()>,
    /// Notifies when a kind is listed that was not served before.
    arrivals: broadcast::Sender<Kind>,
    /// The kinds of targets, including those of observed InjectionTargets, and the CA injectors that Windlass
    /// replaces.
    target_kinds: watch::Sender<Arc<TargetKinds>>,
}

/// How many changes a subscriber may lag behind before it has to read everything again.
const BACKLOG: usize = 1024;

impl Index {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self {
            shelves: RwLock::default(),
            changes: broadcast::Sender::new(BACKLOG),
            progress: watch::Sender::new(()),
            arrivals: broadcast::Sender::new(BACKLOG),
            target_kinds: watch::Sender::new(Arc::default()),
        }
    }

    /// Returns the object with this key, if the index has it.
    pub fn find(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.find_indexed(key).map(|object| object.read())
    }

    /// Returns an object if the index holds all fields that can be applied or compared.
    pub fn find_whole(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.find(key).filter(|seen| is_whole(seen, &Kind::from_key(key)))
    }

    /// Returns the entry of an object.
    pub fn find_indexed(&self, key: &ObjectKey) -> Option<IndexedObject> {
        let kind = Kind::from_key(key);
        let shelves = self.shelves.read();
        shelves
            .iter()
            .filter(|(watch, _)| watch.kind == kind)
            .find_map(|(_, shelf)| shelf.objects().get(key).cloned())
    }

    /// Returns all objects of a kind, deduplicated and sorted by key.
    pub fn objects(&self, kind: &Kind) -> Vec<Arc<Value>> {
        parse_all(self.collect(kind, |shelf| Box::new(shelf.objects().iter()), entry))
    }

    /// Returns all entries of a kind, without parsing them, which would take much memory.
    pub fn indexed(&self, kind: &Kind) -> SeenObjects {
        let objects = self.collect(kind, |shelf| Box::new(shelf.objects().iter()), with_key);
        objects.into_iter().collect()
    }

    /// Returns the objects of a kind in a namespace, or the cluster-scoped ones.
    pub fn objects_within(&self, kind: &Kind, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let first = kind.object(namespace, "");
        parse_all(self.collect(kind, |shelf| shelf.within(&first), entry))
    }

    /// Returns the objects of a kind for which `selects` returns true, deduplicated.
    pub fn select(&self, kind: &Kind, selects: impl Fn(&Value) -> bool) -> SeenObjects {
        let selected = |key: &ObjectKey, object: &IndexedObject| {
            let is_selected = selects(&object.read());
            is_selected.then(|| with_key(key, object))
        };
        let objects = self.collect(kind, |shelf| Box::new(shelf.objects().iter()), selected);
        objects.into_iter().flatten().collect()
    }

    /// Returns the EndpointSlices of a Service.
    pub fn endpoint_slices(&self, namespace: &str, service: &str) -> Vec<Arc<Value>> {
        let relation = Relation::Endpoints(namespace.to_owned(), service.to_owned());
        parse_all(self.collect(&kinds::ENDPOINT_SLICE, |shelf| shelf.related(&relation), entry))
    }

    /// Searches the stores of a kind, and returns results deduplicated and sorted by key.
    fn collect<T>(
        &self,
        kind: &Kind,
        find: impl for<'s> Fn(&'s WatchStore) -> Found<'s>,
        keep: impl Fn(&ObjectKey, &IndexedObject) -> T,
    ) -> Vec<T> {
        let shelves = self.shelves.read();
        let of_kind = shelves.iter().filter(|(watch, _)| watch.kind == *kind);
        let mut objects = BTreeMap::new();
        for (key, object) in of_kind.flat_map(|(_, shelf)| find(shelf)) {
            objects.entry(key).or_insert(object);
        }
        objects
            .into_iter()
            .map(|(key, object)| keep(key, object))
            .collect()
    }

    /// Reports whether `watch` has completed a list at least once.
    pub fn is_complete(&self, watch: &Watch) -> bool {
        self.shelves
            .read()
            .get(watch)
            .is_some_and(|shelf| shelf.is_complete)
    }

    /// Reports whether the API server does not serve the kind of `watch`.
    pub fn is_absent(&self, watch: &Watch) -> bool {
        self.shelves
            .read()
            .get(watch)
            .is_some_and(|shelf| shelf.is_absent)
    }

    /// Returns the number of objects of each kind.
    pub fn sizes(&self) -> BTreeMap<Kind, usize> {
        let mut sizes = BTreeMap::new();
        for (watch, shelf) in &*self.shelves.read() {
            *sizes.entry(watch.kind.clone()).or_default() += shelf.objects().len();
        }
        sizes
    }

    /// Subscribes to all changes. A subscriber that lags too far gets [`broadcast::error::RecvError::Lagged`]
    /// and has to read everything again.
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Subscribes to kinds that are listed after they were not served. Objects that were created and deleted
    /// in between cause no change. A subscriber that lags too far gets
    /// [`broadcast::error::RecvError::Lagged`].
    pub fn arrivals(&self) -> broadcast::Receiver<Kind> {
        self.arrivals.subscribe()
    }

    /// Records an object that was added or changed.
    pub fn apply(&self, watch: &Watch, object: Value) {
        let Some(key) = watch.key(&object) else { return };
        let after = ChangedObject::parsed(object, &self.target_kinds());
        let before = self.edit(watch, |shelf| shelf.insert(key.clone(), after.indexed().clone()));
        self.publish(Change {
            key,
            before: before.map(Into::into),
            after: Some(after),
        });
    }

    /// Records that an object was deleted.
    pub fn delete(&self, watch: &Watch, key: &ObjectKey) {
        let before = self.edit(watch, |shelf| shelf.remove(key));
        if before.is_some() {
            // The object has only left a selector if another watch of the kind still has it.
            self.publish(Change {
                key: key.clone(),
                before: before.map(Into::into),
                after: self.find_indexed(key).map(Into::into),
            });
        }
    }

    /// Begins a relist: objects that it does not repeat are deleted when it finishes.
    pub fn begin_relist(&self, watch: &Watch) {
        self.edit(watch, |shelf| shelf.relisted.clear());
    }

    /// Records an object of a relist. New objects are visible immediately; deletions are only known after the
    /// complete list.
    pub fn relist(&self, watch: &Watch, object: Value) {
        let Some(key) = watch.key(&object) else { return };
        let after = IndexedObject::new(&object, &self.target_kinds());
        let is_new = self.edit(watch, |shelf| {
            shelf.relisted.insert(key.clone(), after.clone());
            let is_new = !shelf.objects().contains_key(&key);
            if is_new {
                shelf.insert(key.clone(), after.clone());
            }
            is_new
        });
        if is_new {
            self.publish(Change {
                key,
                before: None,
                after: Some(after.into()),
            });
        }
    }

    /// Completes a relist: objects that it lacked were deleted.
    pub fn finish_relist(&self, watch: &Watch) {
        let was_absent = self.replace(watch, false);
        if was_absent {
            // Fails only without receivers.
            let _ = self.arrivals.send(watch.kind.clone());
        }
    }

    /// Marks the state of a watch as outdated until it is listed again: after each error of a watch in the
    /// remote cluster, and after a reconnection.
    pub(crate) fn mark_outdated(&self, watch: &Watch) {
        self.edit(watch, |shelf| shelf.is_complete = false);
        self.progress.send_replace(());
    }

    /// Records that the kind is not served, which counts as a complete empty list.
    pub fn mark_absent(&self, watch: &Watch) {
        self.begin_relist(watch);
        self.replace(watch, true);
    }

    /// Replaces the objects of a watch by those of the relist. Reports whether the kind was not served
    /// before.
    fn replace(&self, watch: &Watch, is_absent: bool) -> bool {
        let (before, after, was_absent) = self.edit(watch, |shelf| {
            let before = shelf.finish_relist();
            let was_absent = std::mem::replace(&mut shelf.is_absent, is_absent);
            (before, shelf.objects().clone(), was_absent)
        });
        for change in difference(&before, &after) {
            self.publish(change);
        }
        self.progress.send_replace(());
        was_absent
    }

    /// Removes a watch that has ended, with the objects that only it had.
    pub fn close(&self, watch: &Watch) {
        let shelf = self.shelves.write().remove(watch).unwrap_or_default();
        self.update_target_kinds(watch);
        for change in difference(shelf.objects(), &SeenObjects::new()) {
            self.publish(change);
        }
        // Also notifies for a watch without objects: waiting for all watches no longer includes it.
        self.progress.send_replace(());
    }

    /// Returns a receiver that changes whenever a watch completes its list or ends.
    pub fn progress(&self) -> watch::Receiver<()> {
        self.progress.subscribe()
    }

    fn edit<T>(&self, watch: &Watch, edit: impl FnOnce(&mut WatchStore) -> T) -> T {
        let edited = edit(self.shelves.write().entry(watch.clone()).or_default());
        self.update_target_kinds(watch);
        edited
    }

    fn publish(&self, change: Change) {
        // Fails only without receivers.
        let _ = self.changes.send(change);
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

fn parse_all(objects: Vec<IndexedObject>) -> Vec<Arc<Value>> {
    objects.into_iter().map(|object| object.read()).collect()
}

fn entry(_: &ObjectKey, object: &IndexedObject) -> IndexedObject {
    object.clone()
}

fn with_key(key: &ObjectKey, object: &IndexedObject) -> (ObjectKey, IndexedObject) {
    (key.clone(), object.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::watch::Selector;

    fn secret(name: &str, data: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "n", "name": name}, "data": data})
    }

    fn drain(changes: &mut broadcast::Receiver<Change>) -> Vec<(String, bool, bool)> {
        std::iter::from_fn(|| changes.try_recv().ok())
            .map(|change| (change.key.name, change.before.is_some(), change.after.is_some()))
            .collect()
    }

    #[test]
    fn a_relist_reports_added_changed_and_deleted_objects() {
        let index = Index::new();
        let watch = Watch::all(kinds::SECRET);
        for (name, data) in [("gone", "1"), ("changed", "1"), ("same", "1")] {
            index.apply(&watch, secret(name, data));
        }
        let mut changes = index.subscribe();
        index.begin_relist(&watch);
        for (name, data) in [("changed", "2"), ("same", "1"), ("new", "1")] {
            index.relist(&watch, secret(name, data));
        }
        assert_eq!(drain(&mut changes), [("new".to_owned(), false, true)]);
        assert!(!index.is_complete(&watch), "an incomplete list has no effect");
        index.finish_relist(&watch);
        assert!(index.is_complete(&watch));
        let expected = [("gone", true, false), ("changed", true, true)];
        assert_eq!(
            drain(&mut changes),
            expected.map(|(name, before, after)| (name.to_owned(), before, after))
        );
    }

    #[test]
    fn an_object_stays_while_one_of_two_watches_has_it() {
        let index = Index::new();
        let by_label = Watch::all(kinds::SECRET).selected(Selector::Label("a".into()));
        let by_name = Watch::all(kinds::SECRET).selected(Selector::Name("s".into()));
        index.apply(&by_label, secret("s", "1"));
        index.apply(&by_name, secret("s", "1"));
        let key = kinds::SECRET.object(Some("n"), "s");
        let mut changes = index.subscribe();
        index.delete(&by_label, &key);
        assert!(index.find(&key).is_some());
        assert_eq!(drain(&mut changes), [("s".to_owned(), true, true)]);
        index.close(&by_name);
        assert!(index.find(&key).is_none());
        assert_eq!(index.objects(&kinds::SECRET).len(), 0);
    }

    #[test]
    fn a_newly_served_kind_is_announced() {
        let (index, watch) = (Index::new(), Watch::all(kinds::SECRET));
        let mut arrivals = index.arrivals();
        index.begin_relist(&watch);
        index.finish_relist(&watch);
        index.mark_absent(&watch);
        index.mark_absent(&watch);
        index.begin_relist(&watch);
        index.finish_relist(&watch);
        index.begin_relist(&watch);
        index.finish_relist(&watch);
        let announced = std::iter::from_fn(|| arrivals.try_recv().ok());
        assert_eq!(announced.collect::<Vec<_>>(), [kinds::SECRET]);
    }

    #[test]
    fn completed_and_ended_watches_are_announced() {
        let (index, watch) = (Index::new(), Watch::all(kinds::SECRET));
        let mut progress = index.progress();
        index.begin_relist(&watch);
        assert!(!progress.has_changed().unwrap());
        index.finish_relist(&watch);
        assert!(progress.has_changed().unwrap());
        progress.mark_unchanged();
        // A watch that ends before its list is complete.
        index.close(&Watch::all(kinds::SERVICE));
        assert!(progress.has_changed().unwrap());
    }
}
