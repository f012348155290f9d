//! Applies patches with the semantics of rules.

use serde_json::{Map, Value};
use thiserror::Error;

use super::operation::{JsonPatchOperation, Pointer, index};

/// The maximum number of copied values per patch, including nested ones: copies of copies grow exponentially.
const MOST_COPIED: usize = 100_000;

/// The maximum nesting of an object: all traversals are recursive.
const DEEPEST_VALUE: usize = 256;

/// Why an operation cannot be applied to an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApplyPatchError {
    /// A parent in the path is a scalar.
    #[error("{0}: {1} is neither an object nor a list")]
    NoContainer(Pointer, Pointer),
    /// The index is out of range.
    #[error("{0}: {1:?} is not an index of a list of {2} items")]
    NoIndex(Pointer, String, usize),
    /// A parent in the path does not exist, and could be a list or an object.
    #[error("{0}: {1} does not exist")]
    Missing(Pointer, Pointer),
    /// A test fails.
    #[error("{0}: does not have the tested value")]
    Untrue(Pointer),
    /// The whole object would be removed or become another type.
    #[error("the object as a whole cannot be removed or replaced by another type")]
    Whole,
    /// Copies would make the object too large.
    #[error("{0}: copies more than {MOST_COPIED} values")]
    TooLarge(Pointer),
    /// The object would be nested too deep.
    #[error("{0}: is nested deeper than {DEEPEST_VALUE} levels")]
    TooDeep(Pointer),
    /// A value would be moved into itself.
    #[error("{0}: cannot be moved into itself")]
    IntoItself(Pointer),
}

/// Applies operations in order. `replace` adds missing values, missing parents are created, and `remove` of a
/// missing value does nothing. Null counts as missing, as in API servers.
///
/// # Errors
///
/// The first operation that cannot be applied; earlier ones are applied.
pub fn apply(object: &mut Value, patch: &[JsonPatchOperation]) -> Result<(), ApplyPatchError> {
    let mut copied = 0;
    patch
        .iter()
        .try_for_each(|operation| apply_one(object, operation, &mut copied))
}

fn apply_one(
    object: &mut Value,
    operation: &JsonPatchOperation,
    copied: &mut usize,
) -> Result<(), ApplyPatchError> {
    match operation {
        JsonPatchOperation::Add(path, value) => set_value(object, path, value.clone(), true),
        JsonPatchOperation::Replace(path, value) => set_value(object, path, value.clone(), false),
        JsonPatchOperation::Remove(path) => remove(object, path).map(drop),
        JsonPatchOperation::Test(path, value) => {
            let is_true = path.find(object).unwrap_or(&Value::Null) == value;
            is_true
                .then_some(())
                .ok_or_else(|| ApplyPatchError::Untrue(path.clone()))
        }
        JsonPatchOperation::Copy(from, path) => {
            let value = path_value(object, from)?;
            *copied = copied.saturating_add(count(value));
            if *copied > MOST_COPIED {
                return Err(ApplyPatchError::TooLarge(path.clone()));
            }
            set_value(object, path, value.clone(), true)
        }
        JsonPatchOperation::Move(from, path) => {
            path_value(object, from)?;
            if path.tokens().len() > from.tokens().len() && path.tokens().starts_with(from.tokens()) {
                return Err(ApplyPatchError::IntoItself(from.clone()));
            }
            let value = remove(object, from)?.unwrap_or_default();
            set_value(object, path, value, true)
        }
    }
}

/// Counts a value and its nested values.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Returns the nesting depth of a value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn path_value<'a>(object: &'a Value, path: &Pointer) -> Result<&'a Value, ApplyPatchError> {
    path.find(object)
        .ok_or_else(|| ApplyPatchError::Missing(path.clone(), path.clone()))
}

/// Sets a value; in a list, inserts it before an item, or replaces the item.
fn set_value(object: &mut Value, path: &Pointer, value: Value, inserts: bool) -> Result<(), ApplyPatchError> {
    if path.tokens().len() + depth(&value) > DEEPEST_VALUE {
        return Err(ApplyPatchError::TooDeep(path.clone()));
    }
    let Some((last, parents)) = path.tokens().split_last() else {
        if !value.is_object() {
            return Err(ApplyPatchError::Whole);
        }
        *object = value;
        return Ok(());
    };
    let mut place = object;
    for (depth, token) in parents.iter().enumerate() {
        place = child(place, path, depth, token)?;
    }
    if place.is_null() {
        *place = new_parent(path, path.tokens().len() - 1)?;
    }
    match place {
        Value::Object(fields) => {
            fields.insert(last.clone(), value);
        }
        Value::Array(items) => {
            let count = items.len();
            let no_index = || ApplyPatchError::NoIndex(path.clone(), last.clone(), count);
            if last == "-" {
                items.push(value);
                return Ok(());
            }
            let index = index(last).ok_or_else(no_index)?;
            if index == count || (inserts && index < count) {
                items.insert(index, value);
            } else {
                *items.get_mut(index).ok_or_else(no_index)? = value;
            }
        }
        _ => {
            return Err(ApplyPatchError::NoContainer(
                path.clone(),
                Pointer::from_tokens(parents.to_vec()),
            ));
        }
    }
    Ok(())
}

/// Returns a child of a parent, creating it if missing.
fn child<'a>(
    place: &'a mut Value,
    path: &Pointer,
    depth: usize,
    token: &str,
) -> Result<&'a mut Value, ApplyPatchError> {
    if place.is_null() {
        *place = new_parent(path, depth)?;
    }
    match place {
        Value::Object(fields) => Ok(fields.entry(token).or_insert(Value::Null)),
        Value::Array(items) => {
            let count = items.len();
            let found = index(token).and_then(|index| items.get_mut(index));
            found.ok_or_else(|| ApplyPatchError::NoIndex(path.clone(), token.to_owned(), count))
        }
        _ => Err(ApplyPatchError::NoContainer(
            path.clone(),
            Pointer::from_tokens(path.tokens()[..depth].to_vec()),
        )),
    }
}

/// The type of a missing parent: a list before `-`, an object before a name. Before a number it could be
/// either.
fn new_parent(path: &Pointer, depth: usize) -> Result<Value, ApplyPatchError> {
    let token = &path.tokens()[depth];
    if token == "-" {
        return Ok(Value::Array(Vec::new()));
    }
    if index(token).is_some() {
        let parent = Pointer::from_tokens(path.tokens()[..depth].to_vec());
        return Err(ApplyPatchError::Missing(path.clone(), parent));
    }
    Ok(Value::Object(Map::new()))
}

/// Removes the value at a path, if it exists.
fn remove(object: &mut Value, path: &Pointer) -> Result<Option<Value>, ApplyPatchError> {
    let Some((last, parents)) = path.tokens().split_last() else {
        return Err(ApplyPatchError::Whole);
    };
    let mut place = object;
    for token in parents {
        let found = match place {
            Value::Object(fields) => fields.get_mut(token),
            Value::Array(items) => index(token).and_then(|index| items.get_mut(index)),
            _ => None,
        };
        let Some(found) = found else { return Ok(None) };
        place = found;
    }
    Ok(match place {
        Value::Object(fields) => fields.shift_remove(last),
        Value::Array(items) => {
            let index = index(last).filter(|index| *index < items.len());
            index.map(|index| items.remove(index))
        }
        _ => None,
    })
}
