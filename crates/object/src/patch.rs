//! JSON patches with guards, and entries of `metadata.managedFields`.

use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation, jsonptr::PointerBuf};
use serde_json::{Value, json};

use crate::object;

/// The patch that takes `manager`'s entry of plain updates away; `None` when there is none. Status is not touched.
///
/// It must be a write of its own: with one that also changes a field the API server adds the entry again.
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

/// A patch that puts `value` at `path` if each of `guards` (a path and its value) still holds.
pub fn guarded(guards: &[(&str, &Value)], path: &str, value: &Value) -> Patch {
    let mut operations: Vec<_> = guards.iter().map(|(path, value)| test(path, value)).collect();
    operations.push(put(path, value.clone()));
    Patch(operations)
}

/// A patch that changes labels and annotations, guarded by the resourceVersion of `live`; null takes one away.
pub fn relabelled(live: &Value, labels: &Value, annotations: &Value) -> Patch {
    let mut patched = live.clone();
    let change = json!({ "metadata": { "labels": labels, "annotations": annotations } });
    json_patch::merge(&mut patched, &change);
    let mut operations = vec![test(
        "/metadata/resourceVersion",
        &live["metadata"]["resourceVersion"],
    )];
    for field in ["labels", "annotations"] {
        let path = format!("/metadata/{field}");
        let value = patched["metadata"][field].clone();
        operations.push(put(&path, value));
    }
    Patch(operations)
}

/// Whether `manager` has applied the object.
pub fn applied_by(object: &Value, manager: &str) -> bool {
    object::items(object, "/metadata/managedFields")
        .iter()
        .any(|entry| is_entry(entry, manager, "Apply"))
}

/// Whether `manager` has applied the object, or created or changed it otherwise.
pub fn written_by(object: &Value, manager: &str) -> bool {
    object::items(object, "/metadata/managedFields")
        .iter()
        .any(|entry| is_entry(entry, manager, "Apply") || is_entry(entry, manager, "Update"))
}

/// Only go on if the value at `path` is this one.
pub fn test(path: &str, value: &Value) -> PatchOperation {
    PatchOperation::Test(TestOperation {
        path: pointer(path),
        value: value.clone(),
    })
}

/// Put `value` at `path`, in the place of what is there.
pub fn put(path: &str, value: Value) -> PatchOperation {
    // `add` also replaces.
    PatchOperation::Add(AddOperation {
        path: pointer(path),
        value,
    })
}

/// Take the value at `path` away.
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
    use super::*;

    #[test]
    fn only_the_entry_of_plain_updates_goes() {
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
        assert!(written_by(&patched, "m") && written_by(&patched, "other"));
        assert!(!written_by(&patched, "another"));
    }

    #[test]
    fn labels_and_annotations_of_others_stay() {
        let live = json!({"metadata": {"resourceVersion": "1", "labels": {"ours": "1", "theirs": "1"}}});
        let patch = relabelled(&live, &json!({"ours": null}), &json!({"released": "yes"}));
        let mut patched = live.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        assert_eq!(patched["metadata"]["labels"], json!({"theirs": "1"}));
        assert_eq!(patched["metadata"]["annotations"], json!({"released": "yes"}));
    }

    #[test]
    fn an_entry_that_moved_fails_the_guard() {
        let object = json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Update"}]}});
        let patch = release(&object, "m").unwrap();
        let mut moved = json!({"metadata": {"managedFields": [{"manager": "other", "operation": "Update"}]}});
        assert!(json_patch::patch(&mut moved, &patch).is_err());
    }
}
