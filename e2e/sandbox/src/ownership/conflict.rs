//! Finds the fields of a set that differ between two objects, and builds the error of a conflict.

use serde_json::Value;

use super::{
    fields::{FieldSet, element},
    managers::Entry,
};
use crate::{
    Cause, StatusError,
    schema::{ListType, TypeSchema},
};

/// Returns the members of `fields` whose values differ between `left` and `right`.
pub(super) fn differing_fields(
    fields: &FieldSet,
    left: &Value,
    right: &Value,
    path: &mut Vec<String>,
    schema: &TypeSchema,
) -> FieldSet {
    let mut found = FieldSet::default();
    for (name, below) in fields.children() {
        let (left, right) = (
            child_value(left, name, path, schema),
            child_value(right, name, path, schema),
        );
        path.push(name.strip_prefix("f:").unwrap_or("*").to_owned());
        let mut deeper = differing_fields(below, left, right, path, schema);
        // Only the existence of an item counts for its own membership; the value counts for a field.
        let is_leaf = below.children().next().is_none();
        if below.is_member() && is_leaf && left != right {
            deeper = deeper.union(&FieldSet::decode(&Value::Null));
        }
        path.pop();
        if !deeper.is_empty() {
            found = found.union(&wrap(name, &deeper));
        }
    }
    found
}

fn wrap(name: &str, below: &FieldSet) -> FieldSet {
    let mut tree = serde_json::Map::new();
    tree.insert(name.to_owned(), below.encode());
    FieldSet::decode(&Value::Object(tree))
}

/// Returns the value of a child of `value`.
pub(super) fn child_value<'a>(
    value: &'a Value,
    name: &str,
    path: &[String],
    schema: &TypeSchema,
) -> &'a Value {
    if let Some(field) = name.strip_prefix("f:") {
        return &value[field];
    }
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let list_type: ListType = schema.list(&path);
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .find(|item| element(item, &list_type) == name)
        .unwrap_or(&Value::Null)
}

/// Returns the 409 that names each conflicting field and its owner; `None` without a conflict.
pub(super) fn error(conflicts: &[(&Entry, FieldSet)]) -> Option<StatusError> {
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for (entry, fields) in conflicts {
        let who = describe(entry);
        lines.push(format!("conflicts with {who}:"));
        for path in fields.paths() {
            lines.push(format!("- {path}"));
            causes.push(Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {who}"),
                field: path,
            });
        }
    }
    let message = match (causes.as_slice(), conflicts) {
        ([], _) => return None,
        ([only], [(entry, _)]) => {
            format!(
                "Apply failed with 1 conflict: conflict with {}: {}",
                describe(entry),
                only.field
            )
        }
        _ => format!(
            "Apply failed with {} conflicts: {}",
            causes.len(),
            lines.join("\n")
        ),
    };
    Some(StatusError {
        causes,
        ..StatusError::new(409, "Conflict", message)
    })
}

fn describe(entry: &Entry) -> String {
    let mut words = format!("{:?}", entry.manager);
    if !entry.subresource.is_empty() {
        words = format!("{words} with subresource {:?}", entry.subresource);
    }
    if entry.operation == "Update" {
        words = format!("{words} using {}", entry.api_version);
    }
    words
}
