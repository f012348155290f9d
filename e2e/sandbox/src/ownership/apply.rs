//! Server-side apply.

use serde_json::{Map, Value};

use super::{
    Write, conflict,
    fields::{FieldSet, element},
    managers::{self, Entry},
};
use crate::{
    StatusError,
    schema::{ListType, TypeSchema},
};

/// Applies a configuration to `live`, or creates an object from it.
///
/// Fields that the manager applied before and now omits are removed, unless another manager owns them too.
///
/// # Errors
///
/// 409 when other managers own fields with other values and `force` is not set; 500, like the real server,
/// when the schema does not declare a field; 400 when the configuration contains managedFields.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    write: &Write<'_>,
    force: bool,
    schema: &TypeSchema,
) -> Result<Value, StatusError> {
    let applied = configuration(applied, write, schema)?;
    let set = FieldSet::from_object(&applied, schema);
    let empty = Value::Null;
    let base = live.unwrap_or(&empty);
    let mut entries = match live {
        Some(live) => {
            managers::before_first_apply(live, FieldSet::from_object(&own_part(live, write), schema), write)
        }
        None => Vec::new(),
    };
    take_over(&mut entries, &set, base, &applied, write, force, schema)?;
    let previous = entries
        .iter()
        .find(|entry| entry.is_entry_of(write, "Apply"))
        .map(|entry| entry.fields.clone());
    let others = entries
        .iter()
        .filter(|entry| !entry.is_entry_of(write, "Apply"))
        .fold(FieldSet::default(), |all, entry| all.union(&entry.fields));
    let mut merged = merge(base, &applied, &mut Vec::new(), schema);
    if let Some(previous) = &previous {
        let given_up = previous.difference(&set).released_by(&others);
        let kept = others.union(&set);
        remove(&mut merged, &given_up, Some(&kept), &mut Vec::new(), schema);
        // An object that was applied empty is kept, even if all of its fields were given up.
        merged = merge(&merged, &applied, &mut Vec::new(), schema);
    }
    let time = entries
        .iter()
        .find(|entry| entry.is_entry_of(write, "Apply") && entry.fields == set)
        .map(|entry| entry.time.clone());
    entries.retain(|entry| !entry.is_entry_of(write, "Apply"));
    let mut own = Entry::new(write, "Apply", set);
    own.time = time.unwrap_or(own.time);
    let present = FieldSet::from_object(&merged, schema);
    for entry in &mut entries {
        if entry.api_version == write.api_version {
            entry.fields = entry.fields.present_in(&present);
        }
    }
    entries.push(own);
    managers::write(&mut merged, &entries);
    Ok(merged)
}

/// Returns the part of `applied` that this request may write.
fn configuration(applied: &Value, write: &Write<'_>, schema: &TypeSchema) -> Result<Value, StatusError> {
    if applied["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|entries| !entries.is_empty())
    {
        return Err(StatusError::bad_request("metadata.managedFields must be nil"));
    }
    let applied = own_part(applied, write);
    if let Some(path) = undeclared_field(&applied, &mut Vec::new(), schema) {
        let name = applied["metadata"]["name"].as_str().unwrap_or_default();
        let kind = applied["kind"].as_str().unwrap_or_default();
        return Err(StatusError::new(
            500,
            "",
            format!(
                "failed to create typed patch object (/{name}; {}, Kind={kind}): {path}: field not declared in schema",
                write.api_version
            ),
        ));
    }
    Ok(applied)
}

/// With `force`, removes from other managers the fields that this one applies with another value.
fn take_over(
    entries: &mut [Entry],
    set: &FieldSet,
    base: &Value,
    applied: &Value,
    write: &Write<'_>,
    force: bool,
    schema: &TypeSchema,
) -> Result<(), StatusError> {
    let mut conflicts = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_entry_of(write, "Apply")) {
        let shared = set.intersection(&entry.fields);
        let differing = conflict::differing_fields(&shared, base, applied, &mut Vec::new(), schema);
        if !differing.is_empty() {
            conflicts.push((entry, differing));
        }
    }
    if force {
        let taken = conflicts
            .iter()
            .fold(FieldSet::default(), |all, (_, fields)| all.union(fields));
        for entry in entries
            .iter_mut()
            .filter(|entry| !entry.is_entry_of(write, "Apply"))
        {
            entry.fields = entry.fields.without(&taken);
        }
    } else if let Some(error) = conflict::error(&conflicts) {
        return Err(error);
    }
    Ok(())
}

/// Returns the part of a configuration that this request may write: `status` belongs to its subresource, the
/// rest to the object.
fn own_part(applied: &Value, write: &Write<'_>) -> Value {
    let Some(fields) = applied.as_object() else {
        return applied.clone();
    };
    let kept = |name: &str| match write.subresource {
        Some("status") => matches!(name, "apiVersion" | "kind" | "metadata" | "status"),
        _ => true,
    };
    fields
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns the first field that the schema does not declare, for example `.spec.zz`.
fn undeclared_field<'a>(value: &'a Value, path: &mut Vec<&'a str>, schema: &TypeSchema) -> Option<String> {
    if !schema.declares(path) {
        let shown: String = path
            .iter()
            .map(|name| {
                if *name == "*" {
                    "[]".to_owned()
                } else {
                    format!(".{name}")
                }
            })
            .collect();
        return Some(shown);
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            path.push(name);
            let found = undeclared_field(value, path, schema);
            path.pop();
            found
        }),
        Value::Array(items) => {
            path.push("*");
            let found = items.iter().find_map(|item| undeclared_field(item, path, schema));
            path.pop();
            found
        }
        _ => None,
    }
}

/// Merges `applied` into `base`.
fn merge<'a>(base: &Value, applied: &'a Value, path: &mut Vec<&'a str>, schema: &TypeSchema) -> Value {
    match (base, applied) {
        (Value::Object(old), Value::Object(new)) if !schema.is_atomic_object(path) => {
            let mut merged = old.clone();
            for (name, value) in new {
                path.push(name);
                let value = merge(&base[name.as_str()], value, path, schema);
                path.pop();
                merged.insert(name.clone(), value);
            }
            merged.into()
        }
        (Value::Array(old), Value::Array(new)) => {
            let list_type = schema.list(path);
            if list_type == ListType::Atomic {
                return applied.clone();
            }
            let mut merged = old.clone();
            path.push("*");
            for item in new {
                let name = element(item, &list_type);
                match merged.iter_mut().find(|old| element(old, &list_type) == name) {
                    Some(old) => *old = merge(old, item, path, schema),
                    None => merged.push(item.clone()),
                }
            }
            path.pop();
            merged.into()
        }
        _ => applied.clone(),
    }
}

/// Removes fields from an object, and parents that are then empty or contain no field of `kept`: fields
/// without an owner are removed with their last owned sibling (`EnsureNamedFieldsAreMembers` in
/// structured-merge-diff).
fn remove(
    value: &mut Value,
    fields: &FieldSet,
    kept: Option<&FieldSet>,
    path: &mut Vec<String>,
    schema: &TypeSchema,
) {
    for (name, below) in fields.children() {
        let is_leaf = below.children().next().is_none();
        let kept = kept.and_then(|kept| kept.child(name));
        if let Some(field) = name.strip_prefix("f:") {
            let Some(object) = value.as_object_mut() else {
                continue;
            };
            if is_leaf && below.is_member() {
                object.remove(field);
                continue;
            }
            let Some(inner) = object.get_mut(field) else {
                continue;
            };
            path.push(field.to_owned());
            remove(inner, below, kept, path, schema);
            path.pop();
            let is_empty = match inner {
                Value::Object(fields) => fields.is_empty(),
                Value::Array(items) => items.is_empty(),
                _ => false,
            };
            let is_unowned = !path.is_empty() && kept.is_none_or(FieldSet::is_empty);
            if is_empty || is_unowned {
                object.remove(field);
            }
            continue;
        }
        let here: Vec<&str> = path.iter().map(String::as_str).collect();
        let list_type = schema.list(&here);
        let Some(items) = value.as_array_mut() else {
            continue;
        };
        let Some(index) = items.iter().position(|item| element(item, &list_type) == *name) else {
            continue;
        };
        if below.is_member() {
            items.remove(index);
        } else {
            path.push("*".to_owned());
            remove(&mut items[index], below, kept, path, schema);
            path.pop();
        }
    }
}
