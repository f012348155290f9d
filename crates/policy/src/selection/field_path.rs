//! Paths of fields with dots between them, where names may have dots themselves.

use std::borrow::Cow;

use serde_json::Value;

/// The longest path, in bytes.
pub(crate) const LONGEST: usize = 512;

/// How many names of an object are few.
const FEW: usize = 64;

/// What is at `metadata.annotations.example.com/owner`, whatever of it is one name: of several ways to read it that with the shorter
/// names counts which leads to something. Items of lists are numbers. What is null is not there.
pub(crate) fn field<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.len() > LONGEST {
        return None;
    }
    find(object, path).filter(|value| !value.is_null())
}

/// Each value is looked at once at most: the names that lead to it are a beginning of the path.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let below = |name: &str| match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    };
    if !matches!(value, Value::Object(_) | Value::Array(_)) {
        return None;
    }
    let split = |end: usize| (&path[..end], &path[end + 1..]);
    let found = |(name, rest): (&str, &str)| find(below(name)?, rest);
    match value {
        // Looking at the few names that there are is quicker than looking up each beginning of the path.
        Value::Object(fields) if fields.len() <= FEW => {
            let begins = |name: &&String| path.starts_with(*name) && path[name.len()..].starts_with('.');
            let mut ends: Vec<_> = fields.keys().filter(begins).map(String::len).collect();
            ends.sort_unstable();
            ends.into_iter().map(split).find_map(found)
        }
        _ => path.match_indices('.').map(|(end, _)| split(end)).find_map(found),
    }
    .or_else(|| below(path))
}

/// How a value is written where it is compared with text: numbers and booleans as JSON has them. Lists and objects are not.
pub(crate) fn scalar_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
        _ => None,
    }
}
