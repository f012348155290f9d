//! Helpers that set defaults in objects.

use serde_json::{Value, json};

/// Sets a field that is absent.
pub(super) fn set(object: &mut Value, field: &str, value: Value) {
    if object.is_null() {
        *object = json!({});
    }
    if object.is_object() && object[field].is_null() {
        object[field] = value;
    }
}

/// Iterates over the objects of a list; over nothing if the list is absent.
pub(super) fn each<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.get_mut(field).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter(|item| item.is_object())
}
