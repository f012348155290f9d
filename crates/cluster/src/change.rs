//! One object that came, changed or went.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use windlass_object::ObjectKey;
use windlass_trust::injection::{CaSource, TargetKinds};

use crate::{IndexedObject, watch_store::SeenObjects};

/// One object that came, changed or went.
#[derive(Clone, Debug)]
pub struct Change {
    /// The object.
    pub key: ObjectKey,
    /// How it was known before.
    pub before: Option<ChangedObject>,
    /// How it is now; `None` when it is gone.
    pub after: Option<ChangedObject>,
}

/// A state of an object, which is parsed once for all who hear of the change.
#[derive(Clone, Debug)]
pub struct ChangedObject(Arc<ParsedOnce>);

#[derive(Debug)]
struct ParsedOnce {
    indexed: IndexedObject,
    object: OnceLock<Arc<Value>>,
}

// === impl Change ===

impl Change {
    /// The object as it was known before, and as it is now.
    pub fn versions(&self) -> impl Iterator<Item = Arc<Value>> {
        self.before.iter().chain(&self.after).map(ChangedObject::read)
    }

    /// Whose trust bundles the object asked for before, and asks for now.
    pub fn ca_sources(&self) -> impl Iterator<Item = &CaSource> {
        let versions = self.before.iter().chain(&self.after);
        versions.flat_map(|object| object.indexed().ca_sources())
    }

    /// Whether the object came, went, or changed in one of these fields, which are JSON pointers.
    pub fn differs_in(&self, fields: &[&str]) -> bool {
        let Some((before, after)) = self.both_versions() else {
            return true;
        };
        fields
            .iter()
            .any(|field| before.pointer(field) != after.pointer(field))
    }

    /// The object as it was known before and as it is now, where it neither came nor went.
    pub fn both_versions(&self) -> Option<(Arc<Value>, Arc<Value>)> {
        let (before, after) = self.before.as_ref().zip(self.after.as_ref())?;
        Some((before.read(), after.read()))
    }
}

// === impl ChangedObject ===

impl ChangedObject {
    /// Of an object that is at hand. Targets are of these `kinds`.
    pub(crate) fn parsed(object: Value, kinds: &TargetKinds) -> Self {
        let indexed = IndexedObject::new(&object, kinds);
        let object = OnceLock::from(Arc::new(object));
        Self(Arc::new(ParsedOnce { indexed, object }))
    }

    /// The object as the index holds it.
    pub fn indexed(&self) -> &IndexedObject {
        &self.0.indexed
    }

    /// The object.
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

/// What turns `before` into `after`.
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
