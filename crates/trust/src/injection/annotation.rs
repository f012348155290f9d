//! Annotations as targets spell them.

use serde_json::Value;
use windlass_object::object;

/// The value of an annotation that says something.
pub(super) fn spoken_annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object::annotation(object, name).filter(|value| !value.is_empty())
}
