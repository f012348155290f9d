//! JSON patches with guards, and entries of `metadata.managedFields`.

use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation, jsonptr::PointerBuf};
use serde_json::{Map, Value};

use crate::object;

/// Returns the patch that removes `manager`'s entry of plain updates; `None` if there is none. Entries of
/// subresources stay.
///
/// It must be a separate write: the API server adds the entry again if the same patch changes a field.
pub fn release(object: &Value, manager: &str) -> Option<Patch> {
    let entries = object::items(object, "/metadata/managedFields");
    let index = entries
        .iter()
        .position(|entry| is_entry(entry, manager, "Update"))?;
    let entry = format!("/metadata/managedFields/{index}");
    Some(Patch(vec![
        test(&format!("{entry}/manager"), &manager.into()),
        test(&format!("{entry}/operation"), &"Update".into()),
        remove(&entry),
    ]))
}

/// Returns a patch that sets `value` at `path` if each of `guards` (a path and its value) still matches.
pub fn guarded(guards: &[(&str, &Value)], path: &str, value: &Value) -> Patch {
    let mut operations: Vec<_> = guards.iter().map(|(path, value)| test(path, value)).collect();
    operations.push(put(path, value.clone()));
    Patch(operations)
}

/// Returns a patch that changes labels and annotations, guarded by the resourceVersion of `live`; null
/// removes an entry. Other entries are not touched: `live` may come from an index that omits some.
pub fn relabelled(live: &Value, labels: &Value, annotations: &Value) -> Patch {
    let mut operations = vec![test(
        "/metadata/resourceVersion",
        &live["metadata"]["resourceVersion"],
    )];
    for (path, change) in [
        ("/metadata/labels", labels),
        ("/metadata/annotations", annotations),
    ] {
        operations.extend(changed_entries(live, path, change));
    }
    Patch(operations)
}

/// Returns the operations that set the entries of `change` in the map at `path` of `live`, and touch no
/// others; null removes an entry.
pub fn changed_entries(live: &Value, path: &str, change: &Value) -> Vec<PatchOperation> {
    let Some(change) = change.as_object() else {
        return Vec::new();
    };
    let (gone, put_there): (Vec<_>, Vec<_>) = change.iter().partition(|(_, value)| value.is_null());
    let known = live.pointer(path).and_then(Value::as_object);
    let Some(known) = known else {
        let all: Map<_, _> = put_there
            .into_iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let is_needed = !all.is_empty();
        return is_needed.then(|| put(path, all.into())).into_iter().collect();
    };
    let entry = |name: &str| PointerBuf::from_tokens(path.split('/').skip(1).chain([name]));
    let gone = gone.into_iter().filter(|(name, _)| known.contains_key(*name));
    let removed = gone.map(|(name, _)| PatchOperation::Remove(RemoveOperation { path: entry(name) }));
    let added = put_there.into_iter().map(|(name, value)| {
        PatchOperation::Add(AddOperation {
            path: entry(name),
            value: value.clone(),
        })
    });
    removed.chain(added).collect()
}

/// Reports whether `manager` has applied the object.
pub fn applied_by(object: &Value, manager: &str) -> bool {
    object::items(object, "/metadata/managedFields")
        .iter()
        .any(|entry| is_entry(entry, manager, "Apply"))
}

/// Reports whether `manager` has applied, created or updated the object.
pub fn is_written_by(object: &Value, manager: &str) -> bool {
    object::items(object, "/metadata/managedFields")
        .iter()
        .any(|entry| is_entry(entry, manager, "Apply") || is_entry(entry, manager, "Update"))
}

/// Returns an operation that fails the patch unless `path` has this value.
pub fn test(path: &str, value: &Value) -> PatchOperation {
    PatchOperation::Test(TestOperation {
        path: pointer(path),
        value: value.clone(),
    })
}

/// Returns an operation that sets or replaces the value at `path`.
pub fn put(path: &str, value: Value) -> PatchOperation {
    // `add` also replaces.
    PatchOperation::Add(AddOperation {
        path: pointer(path),
        value,
    })
}

/// Returns an operation that removes the value at `path`.
pub fn remove(path: &str) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path: pointer(path) })
}

fn pointer(path: &str) -> PointerBuf {
    PointerBuf::from_tokens(path.split('/').skip(1))
}

fn is_entry(entry: &Value, manager: &str, operation: &str) -> bool {
    object::text(entry, "/manager") == Some(manager)
        && object::text(entry, "/operation") == Some(operation)
        && object::text(entry, "/subresource").unwrap_or_default().is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_entry_of_plain_updates_is_removed() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "m", "operation": "Apply"},
            {"manager": "m", "operation": "Update", "subresource": "status"},
            {"manager": "other", "operation": "Update"},
            {"manager": "m", "operation": "Update"},
        ]}});
        let patch = release(&object, "m").unwrap();
        let mut patched = object.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        assert_eq!(object::items(&patched, "/metadata/managedFields").len(), 3);
        assert_eq!(release(&patched, "m"), None);
        assert!(applied_by(&patched, "m"));
        assert!(!applied_by(&patched, "other"));
        assert!(is_written_by(&patched, "m") && is_written_by(&patched, "other"));
        assert!(!is_written_by(&patched, "another"));
    }

    #[test]
    fn other_labels_and_annotations_stay() {
        let live = json!({"metadata": {"resourceVersion": "1", "labels": {"ours": "1", "theirs": "1"}}});
        let patch = relabelled(&live, &json!({"ours": null}), &json!({"released": "yes"}));
        let mut patched = live.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        assert_eq!(patched["metadata"]["labels"], json!({"theirs": "1"}));
        assert_eq!(patched["metadata"]["annotations"], json!({"released": "yes"}));
    }

    #[test]
    fn annotations_missing_from_the_index_stay() {
        let seen = json!({"metadata": {"resourceVersion": "1", "annotations": {"a/seen": "1"}}});
        let change = json!({"a/b": "2", "a/none": null, "a/seen": null});
        let patch = relabelled(&seen, &json!({"gone": null}), &change);
        let mut live = seen.clone();
        live["metadata"]["annotations"]["a/long"] = "3".into();
        json_patch::patch(&mut live, &patch).unwrap();
        assert_eq!(
            live["metadata"]["annotations"],
            json!({"a/long": "3", "a/b": "2"})
        );
        assert_eq!(live["metadata"].get("labels"), None);
    }

    #[test]
    fn an_entry_that_moved_fails_the_guard() {
        let object = json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Update"}]}});
        let patch = release(&object, "m").unwrap();
        let mut moved = json!({"metadata": {"managedFields": [{"manager": "other", "operation": "Update"}]}});
        assert!(json_patch::patch(&mut moved, &patch).is_err());
    }
}
