//! Computes the difference between objects.

use serde_json::Value;

use super::operation::{JsonPatch, JsonPatchOperation, Pointer};

/// The maximum number of item pairs that are compared to find unchanged list items.
const PAIRS: usize = 10_000;

/// Computes a minimal patch (RFC 6902) from `before` to `after`. Unchanged list items are not rewritten,
/// except in very long lists with many differences.
pub fn difference(before: &Value, after: &Value) -> JsonPatch {
    let mut patch = JsonPatch::new();
    compare(before, after, &mut Vec::new(), &mut patch);
    patch
}

fn compare(before: &Value, after: &Value, path: &mut Vec<String>, patch: &mut JsonPatch) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            for (name, old) in old {
                path.push(name.clone());
                match new.get(name) {
                    Some(new) => compare(old, new, path, patch),
                    None => patch.push(JsonPatchOperation::Remove(pointer_to(path))),
                }
                path.pop();
            }
            for (name, new) in new {
                if !old.contains_key(name) {
                    path.push(name.clone());
                    patch.push(JsonPatchOperation::Add(pointer_to(path), new.clone()));
                    path.pop();
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => compare_lists(old, new, path, patch),
        _ => patch.push(JsonPatchOperation::Replace(pointer_to(path), after.clone())),
    }
}

fn pointer_to(path: &[String]) -> Pointer {
    Pointer::from_tokens(path)
}

/// Traverses both lists from the front, skipping unchanged items. Between these, items on both sides are
/// compared, and the rest is removed or added.
fn compare_lists(old: &[Value], new: &[Value], path: &mut Vec<String>, patch: &mut JsonPatch) {
    let front = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let back = old[front..]
        .iter()
        .rev()
        .zip(new[front..].iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    let old = &old[front..old.len() - back];
    let new = &new[front..new.len() - back];
    let mut kept = common_items(old, new);
    kept.push((old.len(), new.len()));
    // The index of the next item in the partially patched list.
    let mut place = front;
    let (mut old_start, mut new_start) = (0, 0);
    for (old_end, new_end) in kept {
        let old = &old[old_start..old_end];
        let new = &new[new_start..new_end];
        let common = old.len().min(new.len());
        for (old, new) in old.iter().zip(new) {
            path.push(place.to_string());
            compare(old, new, path, patch);
            path.pop();
            place += 1;
        }
        path.push(place.to_string());
        for _ in common..old.len() {
            patch.push(JsonPatchOperation::Remove(pointer_to(path)));
        }
        path.pop();
        for item in &new[common..] {
            path.push(place.to_string());
            patch.push(JsonPatchOperation::Add(pointer_to(path), item.clone()));
            path.pop();
            place += 1;
        }
        place += 1;
        (old_start, new_start) = (old_end + 1, new_end + 1);
    }
}

/// Returns the longest common subsequence of both lists, as index pairs.
fn common_items(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    if old.len().saturating_mul(new.len()) > PAIRS {
        return Vec::new();
    }
    let width = new.len() + 1;
    let mut longest = vec![0_usize; (old.len() + 1) * width];
    for row in (0..old.len()).rev() {
        for column in (0..new.len()).rev() {
            longest[row * width + column] = if old[row] == new[column] {
                longest[(row + 1) * width + column + 1] + 1
            } else {
                longest[(row + 1) * width + column].max(longest[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut kept = Vec::new();
    while row < old.len() && column < new.len() {
        if old[row] == new[column] {
            kept.push((row, column));
            row += 1;
            column += 1;
        } else if longest[(row + 1) * width + column] >= longest[row * width + column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    kept
}
