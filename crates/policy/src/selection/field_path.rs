//! Dotted paths of fields whose names may contain dots.

use std::borrow::Cow;

use serde_json::Value;

/// The maximum length of a path in bytes.
pub(crate) const LONGEST: usize = 512;

/// Up to this number of names, all names of an object are tried.
const FEW: usize = 64;

/// Returns the value at `metadata.annotations.example.com/owner`. Of several ways to split the path, the one
/// with the shortest names that finds a value applies. Items of lists are numbers. Null counts as missing.
pub(crate) fn field<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.len() > LONGEST {
        return None;
    }
    find(object, path).filter(|value| !value.is_null())
}

/// Visits each value at most once: the names above it are a prefix of the path.
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
        // With few names, trying each is faster than looking up every prefix of the path.
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

/// Formats a scalar for comparisons with text: numbers and booleans as in JSON. `None` for lists and objects.
pub(crate) fn scalar_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
        _ => None,
    }
}
