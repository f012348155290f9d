//! Applying a patch as rules mean it.

use serde_json::{Map, Value};
use thiserror::Error;

use super::operation::{JsonPatchOperation, Pointer, index};

/// The most values, those within them counted, that one patch copies: copies of copies double each time.
const MOST_COPIED: usize = 100_000;

/// How deep an object may be nested: whatever goes through it recurses.
const DEEPEST_VALUE: usize = 256;

/// Why an operation cannot be applied to an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApplyPatchError {
    /// A part of the path is something that has no parts.
    #[error("{0}: {1} is neither an object nor a list")]
    NoContainer(Pointer, Pointer),
    /// A list has no such place.
    #[error("{0}: {1:?} is not an index of a list of {2} items")]
    NoIndex(Pointer, String, usize),
    /// What the path leads through is not there, and it cannot be told whether it would be a list.
    #[error("{0}: {1} is not there")]
    Missing(Pointer, Pointer),
    /// A test fails.
    #[error("{0}: is not what is tested for")]
    Untrue(Pointer),
    /// All of an object would be taken away, or become something else.
    #[error("the object as a whole cannot be removed or made something else")]
    Whole,
    /// Copies would make the object too large.
    #[error("{0}: copies more than {MOST_COPIED} values")]
    TooLarge(Pointer),
    /// It would be nested too deep.
    #[error("{0}: leads deeper than {DEEPEST_VALUE} levels")]
    TooDeep(Pointer),
    /// A value would be moved into itself.
    #[error("{0}: cannot be moved into itself")]
    IntoItself(Pointer),
}

/// Applies operations in order: `replace` adds what is not there, missing parents are made, and `remove` of what is not there does
/// nothing. What is null counts as not there, as for an API server.
///
/// # Errors
///
/// With the first operation that cannot be applied; those before it are.
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

/// How many values there are in one, itself counted.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// How many levels there are in a value.
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

/// Puts a value at a place; in a list before the item that is there, or in its place.
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

/// The part of a parent that the path goes through, made where it is not there.
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

/// What is made where the path leads through what is not there: a list before `-`, an object before a name. Before a number it could be
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

/// Takes away what is at a place, if there is something.
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
