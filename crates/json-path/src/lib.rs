//! Kubernetes's JSONPath, as `kubectl` and CustomResourceDefinitions write it.
//!
//! It differs from RFC 9535: braces around a path and the dot before it are optional, dots in names are escaped with a backslash, and a
//! missing field is not an error.
//!
//! | written | selects |
//! |---|---|
//! | `.spec.replicas`, `{.spec.replicas}`, `$.spec.replicas` | a field |
//! | `['a.b/c']`, `.a\.b/c` | a field by a name with dots |
//! | `[0]`, `[-1]` | an item, from the front or the back |
//! | `[1:3]`, `[:2]`, `[-2:]`, `[::2]` | items, from the first to before the last, with a step |
//! | `[*]`, `.*` | every item or field |
//! | `[?(@.type=="Ready")]` | items by a comparison (`==` `!=` `<` `<=` `>` `>=`) of a path from `@` with a literal or another path |
//! | `[?(@.nodePort)]` | items in which a path selects something |
//! | `[0,2]`, `['a','b']` | several items or fields |
//! | `..image` | a field of this value and of all its descendants |
//!
//! `kubectl`'s text around paths and `range`, which are for printing, are not supported. A filter has at most one comparison and no `..`.
//!
//! ```
//! use json_path::Path;
//! use serde_json::json;
//!
//! let pod = json!({"status": {"conditions": [
//!     {"type": "PodScheduled", "status": "True"},
//!     {"type": "Ready", "status": "False"},
//! ]}});
//! let ready = Path::parse(r#".status.conditions[?(@.type=="Ready")].status"#)?;
//! assert_eq!(ready.find(&pod), [&json!("False")]);
//! assert_eq!(json_path::all(&pod, "{.status.conditions[*].type}"), ["PodScheduled", "Ready"]);
//! assert_eq!(json_path::first(&pod, ".status.phase"), None);
//!
//! let error = Path::parse(".status.conditions[").unwrap_err();
//! assert_eq!(error.to_string(), "\".status.conditions[\" is not a JSONPath: expected \"]\" at column 20");
//! # Ok::<(), json_path::PathError>(())
//! ```

mod comparison;
mod copy;
mod find;
mod parse;
mod path;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use comparison::{equal, order};
pub use parse::PathError;
pub use path::Path;

/// Returns every value that a path selects; none if the path is invalid.
pub fn all(object: &Value, path: &str) -> Vec<Value> {
    let found = |path: Path| path.find(object).into_iter().cloned().collect();
    Path::parse(path).map(found).unwrap_or_default()
}

/// Returns the first value that a path selects.
pub fn first(object: &Value, path: &str) -> Option<Value> {
    Path::parse(path).ok()?.first(object).cloned()
}

/// Sets the value at a path of plain fields, and creates missing parents. Any other path changes nothing.
pub fn set(object: &mut Value, path: &str, value: Value) {
    if let Ok(path) = Path::parse(path) {
        path.set(object, value);
    }
}
