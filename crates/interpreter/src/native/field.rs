//! Fields as their kinds have them.

use serde_json::{Map, Value};

/// A field is not of the type that its kind has it in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: must be {expected}")]
pub struct FieldTypeError {
    /// Which, for example `spec.replicas`.
    pub field: String,
    /// For example `an integer`.
    pub expected: &'static str,
}

/// An integer; [`None`] where it is not set.
pub(super) fn integer(object: &Value, pointer: &str) -> Result<Option<i64>, FieldTypeError> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_i64()
            .map(Some)
            .ok_or_else(|| wrong(pointer, "an integer")),
    }
}

/// A text; [`None`] where it is not set.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> Result<Option<&'a str>, FieldTypeError> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or_else(|| wrong(pointer, "a string")),
    }
}

/// A list, empty where it is not set.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> Result<&'a [Value], FieldTypeError> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(wrong(pointer, "a list")),
    }
}

/// The object at a path of fields, made where it is missing.
pub(super) fn within<'a>(
    object: &'a mut Value,
    path: &[&str],
) -> Result<&'a mut Map<String, Value>, FieldTypeError> {
    let mut place = object;
    for (depth, name) in path.iter().enumerate() {
        let fields = fields(place, &path[..depth])?;
        place = fields.entry((*name).to_owned()).or_insert(Value::Null);
    }
    fields(place, path)
}

fn fields<'a>(place: &'a mut Value, path: &[&str]) -> Result<&'a mut Map<String, Value>, FieldTypeError> {
    if place.is_null() {
        *place = Value::Object(Map::new());
    }
    place.as_object_mut().ok_or_else(|| FieldTypeError {
        field: path.join("."),
        expected: "an object",
    })
}

fn wrong(pointer: &str, expected: &'static str) -> FieldTypeError {
    FieldTypeError {
        field: pointer.trim_start_matches('/').replace('/', "."),
        expected,
    }
}
