//! Garbage collection: deletes objects whose owners are all gone.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{client::ControllerClient, objects::is_deleting};
use crate::storage::{StorageKey, version};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Collects garbage once, over all objects.
pub(super) fn pass(client: &ControllerClient) {
    let all = client.store().all_objects();
    let concerned = all
        .iter()
        .any(|(_, object)| !owners(object).is_empty() || deletion_finalizer(object).is_some());
    if !concerned {
        return;
    }
    let by_uid: BTreeMap<&str, (&StorageKey, &Value)> = all
        .iter()
        .filter_map(|(key, object)| Some((object["metadata"]["uid"].as_str()?, (key, object.as_ref()))))
        .collect();
    for (key, object) in &all {
        release_owner(client, &all, key, object);
        collect(client, &by_uid, key, object);
    }
}

fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns the finalizer of a deletion that waits for the garbage collector.
fn deletion_finalizer(object: &Value) -> Option<&'static str> {
    let finalizers = object["metadata"]["finalizers"].as_array()?;
    let has = |finalizer: &str| is_deleting(object) && finalizers.iter().any(|entry| entry == finalizer);
    [ORPHAN, FOREGROUND].into_iter().find(|finalizer| has(finalizer))
}

fn references(object: &Value, owner: &Value) -> bool {
    owners(object)
        .iter()
        .any(|reference| reference["uid"] == owner["metadata"]["uid"])
}

/// Removes the finalizer of an owner once its dependents are deleted or orphaned.
fn release_owner(
    client: &ControllerClient,
    all: &[(StorageKey, Arc<Value>)],
    key: &StorageKey,
    owner: &Arc<Value>,
) {
    let Some(finalizer) = deletion_finalizer(owner) else {
        return;
    };
    let dependents = all.iter().filter(|(_, object)| references(object, owner));
    if finalizer == ORPHAN {
        for (key, dependent) in dependents {
            let mut freed = dependent.as_ref().clone();
            let rest: Vec<Value> = owners(dependent)
                .iter()
                .filter(|entry| entry["uid"] != owner["metadata"]["uid"])
                .cloned()
                .collect();
            freed["metadata"]["ownerReferences"] = rest.into();
            if client
                .store()
                .replace(key.clone(), freed, version(dependent))
                .is_err()
            {
                return;
            }
        }
    } else {
        let blocks = |object: &Value| {
            owners(object)
                .iter()
                .any(|entry| entry["uid"] == owner["metadata"]["uid"] && entry["blockOwnerDeletion"] == true)
        };
        if dependents.filter(|(_, object)| blocks(object)).count() > 0 {
            return;
        }
    }
    let mut released = owner.as_ref().clone();
    if let Some(finalizers) = released["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|entry| entry != finalizer);
    }
    if client
        .store()
        .replace(key.clone(), released, version(owner))
        .is_ok()
    {
        client.server().release(key);
    }
}

/// Deletes an object whose owners are all gone or wait for it, and removes references to owners that are
/// gone.
fn collect(
    client: &ControllerClient,
    by_uid: &BTreeMap<&str, (&StorageKey, &Value)>,
    key: &StorageKey,
    object: &Arc<Value>,
) {
    if owners(object).is_empty() || is_deleting(object) {
        return;
    }
    let owner = |reference: &Value| {
        let (owner_key, owner) = by_uid.get(reference["uid"].as_str()?)?;
        // An owner in another namespace counts as absent.
        (owner_key.namespace.is_empty() || owner_key.namespace == key.namespace).then_some(*owner)
    };
    let (present, gone): (Vec<&Value>, Vec<&Value>) = owners(object)
        .iter()
        .partition(|reference| owner(reference).is_some());
    let solid = present
        .iter()
        .any(|reference| owner(reference).is_some_and(|owner| deletion_finalizer(owner) != Some(FOREGROUND)));
    if !solid {
        let policy = if present.is_empty() {
            "Background"
        } else {
            "Foreground"
        };
        return client.server().delete(key, object, policy);
    }
    if !gone.is_empty() {
        let mut rest = object.as_ref().clone();
        rest["metadata"]["ownerReferences"] = json!(present);
        // If another client changed the object in between, the next pass retries.
        let _ = client.store().replace(key.clone(), rest, version(object));
    }
}
