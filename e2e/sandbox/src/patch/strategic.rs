//! Strategic merge patches for built-in kinds: lists merge by the keys of their items.
//!
//! The directives are those of `k8s.io/apimachinery/pkg/util/strategicpatch`.

use serde_json::{Map, Value};

use crate::{
    StatusError,
    schema::{ListType, TypeSchema},
};

/// The order directives that kubectl sends; they are ignored, because the items determine the result.
const ORDER: &str = "$setElementOrder/";

/// Lists primitive items to remove.
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Applies a strategic merge patch.
///
/// # Errors
///
/// 400 when a directive is unknown or an item of a merged list lacks its key.
pub fn strategic(object: &Value, patch: &Value, schema: &TypeSchema) -> Result<Value, StatusError> {
    let mut patched = object.clone();
    merge(&mut patched, patch, &mut Vec::new(), schema)?;
    Ok(patched)
}

fn merge<'a>(
    object: &mut Value,
    patch: &'a Value,
    path: &mut Vec<&'a str>,
    schema: &TypeSchema,
) -> Result<(), StatusError> {
    let Some(changes) = patch.as_object() else {
        *object = patch.clone();
        return Ok(());
    };
    match changes.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            let kept = changes.iter().filter(|(name, _)| *name != "$patch");
            *object = kept
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<Map<_, _>>()
                .into();
            return Ok(());
        }
        Some("delete") => {
            *object = Value::Object(Map::new());
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => return Err(unknown_directive(other)),
    }
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
    };
    for (name, change) in changes {
        if apply_directive(fields, name, change) {
            continue;
        }
        if change.is_null() {
            fields.remove(name);
            continue;
        }
        path.push(name);
        let slot = fields.entry(name.clone()).or_insert(Value::Null);
        match change {
            Value::Array(items) => merge_list(slot, items, path, schema)?,
            _ => merge(slot, change, path, schema)?,
        }
        path.pop();
    }
    Ok(())
}

/// Applies a field of a patch if it is a directive; returns whether it was one.
fn apply_directive(fields: &mut Map<String, Value>, name: &str, change: &Value) -> bool {
    if name == "$patch" || name.starts_with(ORDER) {
        return true;
    }
    let listed = change.as_array().map(Vec::as_slice).unwrap_or_default();
    if name == "$retainKeys" {
        fields.retain(|field, _| listed.iter().any(|key| key == field));
        return true;
    }
    let Some(list) = name.strip_prefix(DELETE_FROM) else {
        return false;
    };
    if let Some(Value::Array(items)) = fields.get_mut(list) {
        items.retain(|item| !listed.contains(item));
    }
    true
}

fn merge_list<'a>(
    slot: &mut Value,
    changes: &'a [Value],
    path: &mut Vec<&'a str>,
    schema: &TypeSchema,
) -> Result<(), StatusError> {
    let directive = |item: &Value| item.get("$patch").and_then(Value::as_str).map(str::to_owned);
    if changes
        .iter()
        .any(|item| directive(item).as_deref() == Some("replace"))
    {
        let kept = changes.iter().filter(|item| directive(item).is_none());
        *slot = kept.cloned().collect();
        return Ok(());
    }
    let keys = match schema.list(path) {
        ListType::Atomic => {
            *slot = changes.to_vec().into();
            return Ok(());
        }
        ListType::Set => None,
        ListType::Map(keys) => Some(keys),
    };
    let mut items = slot.as_array().cloned().unwrap_or_default();
    for change in changes {
        let found = items.iter().position(|item| match &keys {
            None => item == change,
            // If a list has several keys, strategic merge patch uses only the first.
            Some(keys) => item[&keys[0]] == change[&keys[0]],
        });
        if let Some(keys) = &keys
            && change.get(&keys[0]).is_none()
        {
            let message = format!("map: {change} does not contain declared merge key: {}", keys[0]);
            return Err(StatusError::bad_request(message));
        }
        match (directive(change).as_deref(), found) {
            (Some("delete"), Some(index)) => drop(items.remove(index)),
            (Some("delete"), None) => {}
            (Some("merge") | None, Some(index)) => {
                path.push("*");
                merge(&mut items[index], change, path, schema)?;
                path.pop();
            }
            (Some("merge") | None, None) => items.push(change.clone()),
            (Some(other), _) => return Err(unknown_directive(other)),
        }
    }
    *slot = items.into();
    Ok(())
}

fn unknown_directive(directive: &str) -> StatusError {
    StatusError::bad_request(format!("unknown patch type found: {directive}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_strategic_patch_merges_lists_by_key() {
        let object = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "1", "args": ["x"], "env": [{"name": "E", "value": "1"}]}, {"name": "b"}]}}}});
        let containers = |list: Value| json!({"spec": {"template": {"spec": {"containers": list}}}});
        for (patch, expected) in [
            (
                containers(json!([{"name": "a", "args": ["y"], "env": [{"name": "F", "value": "2"}]}])),
                json!([{"name": "a", "image": "1", "args": ["y"], "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}]}, {"name": "b"}]),
            ),
            (
                containers(json!([{"$patch": "delete", "name": "b"}])),
                json!([{"name": "a", "image": "1", "args": ["x"], "env": [{"name": "E", "value": "1"}]}]),
            ),
            (
                containers(json!([{"$patch": "replace"}, {"name": "c"}])),
                json!([{"name": "c"}]),
            ),
        ] {
            let patched = strategic(&object, &patch, &TypeSchema::built_in("Deployment")).unwrap();
            assert_eq!(
                patched["spec"]["template"]["spec"]["containers"], expected,
                "{patch}"
            );
        }
        let patch = json!({"spec": {"template": null, "replicas": 2}});
        let patched = strategic(&object, &patch, &TypeSchema::built_in("Deployment")).unwrap();
        assert_eq!(patched, json!({"spec": {"replicas": 2}}));
    }
}
