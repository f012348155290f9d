//! Applies JSON patches (RFC 6902) from webhooks to a copy of an object, completely or not at all, with
//! limits on the work and on the size of the result.

use json_patch::{PatchOperation, jsonptr::Pointer, patch_unsafe};
use serde_json::Value;
use thiserror::Error;
use webhook_transport::go_json;
use windlass_object::text::{shortened, tidied};

/// Why a patch cannot be applied.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum PatchObjectError {
    /// The document is not a JSON patch.
    #[error("is not a JSON patch: {0}")]
    Read(serde_json::Error),
    /// An operation failed; none is applied.
    #[error("operation {number} failed: {problem}")]
    Operation {
        /// The number of the operation, from 1.
        number: usize,
        problem: String,
    },
    /// The patch exceeds the limit on work.
    #[error("operation {0} exceeds the limit on work and growth of a patch")]
    TooMuchWork(
        /// The number of the operation, from 1.
        usize,
    ),
    /// The result is nested too deeply.
    #[error("operation {number} nests values more than {DEEPEST} levels deep")]
    TooDeep {
        /// The number of the operation, from 1.
        number: usize,
    },
    /// The result is not an object.
    #[error("the result is not an object")]
    NotAnObject,
    /// The result is a different object.
    #[error("the result has another {0}")]
    OtherObject(
        /// The changed field.
        &'static str,
    ),
}

/// The maximum nesting of the result, as for parsed JSON.
const DEEPEST: usize = 128;

/// The maximum number of values that all operations together may read or move.
const MOST_WORK: usize = 1 << 22;

/// The maximum number of values that all operations together may add: more than any object has.
const MOST_GROWTH: usize = 1 << 19;

/// Bytes of text that count as one value, about the memory of a value.
const TEXT: usize = 64;

/// Characters of a cause that an error quotes.
const LONGEST_MESSAGE: usize = 512;

/// The fields that identify an object and must not change.
const IDENTITY: [(&str, &str); 4] = [
    ("/apiVersion", "apiVersion"),
    ("/kind", "kind"),
    ("/metadata/name", "metadata.name"),
    ("/metadata/namespace", "metadata.namespace"),
];

/// Applies a JSON patch to `object`. List indexes follow RFC 6901, so negative ones are invalid.
///
/// # Errors
///
/// When the document is not a patch, an operation fails, or the result is not the same object.
pub fn apply_json_patch(object: &Value, patch: &[u8]) -> Result<Value, PatchObjectError> {
    let read = go_json::whole_value(patch).and_then(serde_json::from_value::<Option<Vec<PatchOperation>>>);
    let operations = read.map_err(PatchObjectError::Read)?.unwrap_or_default();
    let mut patched = object.clone();
    let (mut work, mut growth) = (0_usize, 0_usize);
    for (number, operation) in (1..).zip(&operations) {
        let weight = weight(&patched, operation);
        work = work.saturating_add(weight.values);
        growth = growth.saturating_add(weight.growth);
        if work > MOST_WORK || growth > MOST_GROWTH {
            return Err(PatchObjectError::TooMuchWork(number));
        }
        if weight.depth > DEEPEST {
            return Err(PatchObjectError::TooDeep { number });
        }
        if is_test_for_nothing(&patched, operation) {
            continue;
        }
        patch_unsafe(&mut patched, std::slice::from_ref(operation)).map_err(|error| {
            PatchObjectError::Operation {
                number,
                problem: shortened(tidied(&error.to_string()), LONGEST_MESSAGE),
            }
        })?;
    }
    if !patched.is_object() {
        return Err(PatchObjectError::NotAnObject);
    }
    let changed = IDENTITY
        .iter()
        .find(|(pointer, _)| patched.pointer(pointer) != object.pointer(pointer));
    match changed {
        Some((_, field)) => Err(PatchObjectError::OtherObject(field)),
        None => Ok(patched),
    }
}

/// Reports whether an operation tests with `null` that a field is absent. RFC 6902 has no such test, but
/// Kubernetes' patch library has.
fn is_test_for_nothing(document: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else {
        return false;
    };
    let parent = test
        .path
        .parent()
        .and_then(|parent| document.pointer(parent.as_str()));
    test.value.is_null()
        && parent.is_some_and(Value::is_object)
        && document.pointer(test.path.as_str()).is_none()
}

/// The cost of an operation, and the depth of its result.
struct Weight {
    values: usize,
    growth: usize,
    depth: usize,
}

fn weight(document: &Value, operation: &PatchOperation) -> Weight {
    let copied = |from: &Pointer| {
        let (values, depth) = document.pointer(from.as_str()).map_or((0, 0), size);
        (values + sibling_count(document, from), depth)
    };
    let (path, (values, depth)) = match operation {
        PatchOperation::Add(add) => (&add.path, size(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, size(&replace.value)),
        PatchOperation::Test(test) => (&test.path, size(&test.value)),
        PatchOperation::Remove(remove) => (&remove.path, (0, 0)),
        PatchOperation::Move(moved) => (&moved.path, copied(&moved.from)),
        PatchOperation::Copy(copy) => (&copy.path, copied(&copy.from)),
    };
    let grows = matches!(
        operation,
        PatchOperation::Add(_) | PatchOperation::Replace(_) | PatchOperation::Copy(_)
    );
    Weight {
        values: values + sibling_count(document, path) + 1,
        growth: if grows { values } else { 0 },
        depth: depth + path.count(),
    }
}

/// Returns the number of siblings, which have to move.
fn sibling_count(document: &Value, path: &Pointer) -> usize {
    let parent = path.parent().and_then(|parent| document.pointer(parent.as_str()));
    match parent {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(fields)) => fields.len(),
        _ => 0,
    }
}

/// Returns the number of values, with one for each [`TEXT`] bytes of text, and the depth.
fn size(value: &Value) -> (usize, usize) {
    let of_all = |inner: &mut dyn Iterator<Item = &Value>| {
        inner.fold((1_usize, 0_usize), |(values, depth), value| {
            let (more, deep) = size(value);
            (values.saturating_add(more), depth.max(deep))
        })
    };
    let (values, depth) = match value {
        Value::Array(items) => of_all(&mut items.iter()),
        Value::Object(fields) => of_all(&mut fields.values()),
        Value::String(text) => (1 + text.len() / TEXT, 0),
        _ => (1, 0),
    };
    (values, depth + 1)
}
