//! Entries of `metadata.managedFields`, and patches with guards.

use json_patch::{
    Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation, jsonptr::PointerBuf,
};
use serde_json::Value;

use crate::domain::object;

/// The patch that takes `manager`'s entry of plain updates away; `None` when there is none. Status is not touched.
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

/// Whether `manager` has applied the object.
pub(super) fn applied_by(object: &Value, manager: &str) -> bool {
    object::items(object, "/metadata/managedFields")
        .iter()
        .any(|entry| is_entry(entry, manager, "Apply"))
}

/// Only go on if the value at `path` is this one.
pub(super) fn test(path: &str, value: &Value) -> PatchOperation {
    PatchOperation::Test(TestOperation {
        path: pointer(path),
        value: value.clone(),
    })
}

/// Put another value at `path`.
pub(super) fn replace(path: &str, value: &Value) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation {
        path: pointer(path),
        value: value.clone(),
    })
}

/// Take the value at `path` away.
fn remove(path: &str) -> PatchOperation {
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
    }

    #[test]
    fn an_entry_that_moved_fails_the_guard() {
        let object = json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Update"}]}});
        let patch = release(&object, "m").unwrap();
        let mut moved = json!({"metadata": {"managedFields": [{"manager": "other", "operation": "Update"}]}});
        assert!(json_patch::patch(&mut moved, &patch).is_err());
    }
}
