//! Giving up the ownership of fields that a patch brought.

use json_patch::{Patch, PatchOperation, RemoveOperation};
use serde_json::Value;

use super::{pointer, test};
use crate::domain::object;

/// The patch that takes `manager`'s entry of plain updates out of `metadata.managedFields`; `None` where there is none.
/// It must be a write of its own: one that also changes a field would bring the entry back.
pub fn release(target: &Value, manager: &str) -> Option<Patch> {
    let is_ours = |entry: &Value| {
        object::text(entry, "/manager") == Some(manager)
            && object::text(entry, "/operation") == Some("Update")
            && object::text(entry, "/subresource").unwrap_or_default().is_empty()
    };
    let index = object::items(target, "/metadata/managedFields")
        .iter()
        .position(is_ours)?;
    let entry = format!("/metadata/managedFields/{index}");
    Some(Patch(vec![
        test(&format!("{entry}/manager"), &manager.into()),
        test(&format!("{entry}/operation"), &"Update".into()),
        PatchOperation::Remove(RemoveOperation {
            path: pointer(&entry),
        }),
    ]))
}
