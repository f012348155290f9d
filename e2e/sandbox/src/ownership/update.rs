//! Tracks the fields of writes other than server-side apply.

use serde_json::Value;

use super::{
    Write,
    fields::FieldSet,
    managers::{self, Entry},
};
use crate::schema::TypeSchema;

/// Records the fields that changed from `live` to `new`; `live` is `None` for a created object.
///
/// The `managedFields` of the client replace the stored ones: if they are absent, the stored entries are
/// kept; an empty list clears them.
pub fn update(live: Option<&Value>, mut new: Value, write: &Write<'_>, schema: &TypeSchema) -> Value {
    let sent = new["metadata"].get("managedFields").cloned();
    let cleared = sent.as_ref().and_then(Value::as_array).is_some_and(|entries| {
        entries.is_empty() && live.is_some()
            || entries
                .iter()
                .any(|entry| entry.as_object().is_some_and(serde_json::Map::is_empty))
    });
    if cleared {
        managers::write(&mut new, &[]);
        return new;
    }
    let mut entries = match (&sent, live) {
        (Some(Value::Array(_)), Some(_)) => managers::read(&new),
        (_, Some(live)) => managers::read(live),
        (_, None) => Vec::new(),
    };
    let before = live
        .map(|live| writable_fields(live, write, schema))
        .unwrap_or_default();
    let after = writable_fields(&new, write, schema);
    let empty = Value::Null;
    let changed = changed(&before, &after, live.unwrap_or(&empty), &new, schema);
    let removed = before.difference(&after);
    for entry in &mut entries {
        let own = entry.is_entry_of(write, "Update");
        entry.fields = entry.fields.without(&removed);
        if !own {
            entry.fields = entry.fields.without(&changed);
        }
        if entry.api_version == write.api_version
            && entry.subresource == write.subresource.unwrap_or_default()
        {
            entry.fields = entry.fields.present_in(&after);
        }
    }
    if !changed.is_empty() {
        match entries
            .iter_mut()
            .find(|entry| entry.is_entry_of(write, "Update"))
        {
            Some(own) => {
                let fields = own.fields.union(&changed);
                own.time = managers::time(write.now);
                own.fields = fields;
            }
            None => entries.push(Entry::new(write, "Update", changed)),
        }
    }
    managers::write(&mut new, &entries);
    new
}

/// Returns the fields that a write may change: a subresource's own, or all except those of subresources.
fn writable_fields(object: &Value, write: &Write<'_>, schema: &TypeSchema) -> FieldSet {
    let mut fields = FieldSet::from_object(object, schema);
    if write.subresource == Some("status") {
        fields.remove("spec");
    }
    fields
}

/// Returns the fields that are new or have another value.
fn changed(before: &FieldSet, after: &FieldSet, old: &Value, new: &Value, schema: &TypeSchema) -> FieldSet {
    let added = after.additions(before);
    let both = after.intersection(before);
    let modified = super::conflict::differing_fields(&both, old, new, &mut Vec::new(), schema);
    added.union(&modified)
}
