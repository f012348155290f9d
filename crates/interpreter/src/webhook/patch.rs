//! JSON patches (RFC 6902) that somebody else wrote: applied to a copy, whole or not at all, with no more work and no larger a result
//! than a patch of an object takes.

use json_patch::{PatchOperation, jsonptr::Pointer, patch_unsafe};
use serde_json::Value;
use thiserror::Error;
use webhook_transport::go_json;
use windlass_object::text::{shortened, tidied};

/// Why a patch does not lead to an object.
#[derive(Debug, Error)]
pub enum PatchObjectError {
    /// It is not a JSON patch.
    #[error("is not a JSON patch: {0}")]
    Read(serde_json::Error),
    /// An operation cannot be done; none is.
    #[error("operation {number} cannot be done: {problem}")]
    Operation {
        /// Which, from 1.
        number: usize,
        /// Why.
        problem: String,
    },
    /// It goes on for too long.
    #[error("operation {0} is one too many for the size of what is patched")]
    TooMuchWork(
        /// The operation, from 1.
        usize,
    ),
    /// It puts values into values.
    #[error("operation {number} nests values more than {DEEPEST} levels deep")]
    TooDeep {
        /// Which, from 1.
        number: usize,
    },
    /// What it makes is not an object.
    #[error("the result is not an object")]
    NotAnObject,
    /// What it makes is another object.
    #[error("the result has another {0}")]
    OtherObject(
        /// The field that says so.
        &'static str,
    ),
}

/// How deeply what is patched may be nested, as JSON that is read may be.
const DEEPEST: usize = 128;

/// How many values may be looked at or moved by all operations together.
const MOST_WORK: usize = 1 << 22;

/// How many values may come in by all operations together: more than any object has.
const MOST_GROWTH: usize = 1 << 19;

/// How many bytes of text count as one value, about as much as it takes itself.
const TEXT: usize = 64;

/// How much of what is wrong with an operation is told, in characters.
const LONGEST_MESSAGE: usize = 512;

/// What may not change: of which object it is.
const IDENTITY: [(&str, &str); 4] = [
    ("/apiVersion", "apiVersion"),
    ("/kind", "kind"),
    ("/metadata/name", "metadata.name"),
    ("/metadata/namespace", "metadata.namespace"),
];

/// `object` as a JSON patch leaves it. Indices of lists are those of RFC 6901: none is negative.
///
/// # Errors
///
/// When it is not a patch, one of its operations cannot be done, or what it makes is not the same object.
pub fn patched(object: &Value, patch: &[u8]) -> Result<Value, PatchObjectError> {
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

/// Whether an operation tests that a field is not there, by `null`. RFC 6902 has no such test, but Kubernetes' library for patches has.
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

/// What an operation takes, and how deep it makes what it changes.
struct Weight {
    values: usize,
    growth: usize,
    depth: usize,
}

fn weight(document: &Value, operation: &PatchOperation) -> Weight {
    let copied = |from: &Pointer| {
        let (values, depth) = document.pointer(from.as_str()).map_or((0, 0), size);
        (values + beside(document, from), depth)
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
        values: values + beside(document, path) + 1,
        growth: if grows { values } else { 0 },
        depth: depth + path.count(),
    }
}

/// How many values have to make room when one comes or goes.
fn beside(document: &Value, path: &Pointer) -> usize {
    let parent = path.parent().and_then(|parent| document.pointer(parent.as_str()));
    match parent {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(fields)) => fields.len(),
        _ => 0,
    }
}

/// How much a value is: its values, with one for each [`TEXT`], and its depth.
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
