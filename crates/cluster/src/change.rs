//! Changes of objects in the index.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use windlass_object::ObjectKey;
use windlass_trust::injection::{CaSource, TargetKinds};

use crate::{IndexedObject, watch_store::SeenObjects};

/// An object that was added, changed or deleted.
#[derive(Clone, Debug)]
pub struct Change {
    /// Key of the object.
    pub key: ObjectKey,
    /// The previous state; `None` if it was added.
    pub before: Option<ChangedObject>,
    /// The current state; `None` if it was deleted.
    pub after: Option<ChangedObject>,
}

/// A state of an object, which is parsed once for all subscribers.
#[derive(Clone, Debug)]
pub struct ChangedObject(Arc<ParsedOnce>);

#[derive(Debug)]
struct ParsedOnce {
    indexed: IndexedObject,
    object: OnceLock<Arc<Value>>,
}

impl Change {
    /// Returns the previous and the current object.
    pub fn versions(&self) -> impl Iterator<Item = Arc<Value>> {
        self.before.iter().chain(&self.after).map(ChangedObject::read)
    }

    /// Returns the trust bundles that the object requested before and requests now.
    pub fn ca_sources(&self) -> impl Iterator<Item = &CaSource> {
        let versions = self.before.iter().chain(&self.after);
        versions.flat_map(|object| object.indexed().ca_sources())
    }

    /// Reports whether the object was added or deleted, or changed in one of these fields, which are JSON
    /// pointers.
    pub fn differs_in(&self, fields: &[&str]) -> bool {
        let Some((before, after)) = self.both_versions() else {
            return true;
        };
        fields
            .iter()
            .any(|field| before.pointer(field) != after.pointer(field))
    }

    /// Returns the previous and the current object, unless it was added or deleted.
    pub fn both_versions(&self) -> Option<(Arc<Value>, Arc<Value>)> {
        let (before, after) = self.before.as_ref().zip(self.after.as_ref())?;
        Some((before.read(), after.read()))
    }
}

impl ChangedObject {
    /// Wraps a parsed object. Targets are of these `kinds`.
    pub(crate) fn parsed(object: Value, kinds: &TargetKinds) -> Self {
        let indexed = IndexedObject::new(&object, kinds);
        let object = OnceLock::from(Arc::new(object));
        Self(Arc::new(ParsedOnce { indexed, object }))
    }

    /// Returns the index entry.
    pub fn indexed(&self) -> &IndexedObject {
        &self.0.indexed
    }

    /// Returns the parsed object.
    pub fn read(&self) -> Arc<Value> {
        self.0.object.get_or_init(|| self.0.indexed.read()).clone()
    }
}

impl From<IndexedObject> for ChangedObject {
    fn from(indexed: IndexedObject) -> Self {
        let object = OnceLock::new();
        Self(Arc::new(ParsedOnce { indexed, object }))
    }
}

impl From<Value> for ChangedObject {
    fn from(object: Value) -> Self {
        Self::parsed(object, &TargetKinds::default())
    }
}

/// Returns the changes that turn `before` into `after`.
pub(crate) fn difference(before: &SeenObjects, after: &SeenObjects) -> Vec<Change> {
    let gone = before
        .iter()
        .filter(|(key, _)| !after.contains_key(key))
        .map(|(key, object)| Change {
            key: key.clone(),
            before: Some(object.clone().into()),
            after: None,
        });
    let present = after.iter().filter_map(|(key, object)| {
        let known = before.get(key);
        (known != Some(object)).then(|| Change {
            key: key.clone(),
            before: known.cloned().map(Into::into),
            after: Some(object.clone().into()),
        })
    });
    gone.chain(present).collect()
}
