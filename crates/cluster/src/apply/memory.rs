//! Memory of applied objects, so that values that the API server normalizes are not written again.

use serde_json::Value;
use windlass_crd::claims::AppliedAs;
use windlass_object::{ObjectKey, names, object};

use super::{
    applier::Applier,
    difference::{body_hash, covers},
    field_owner::FieldOwner,
};

/// Knowledge about an object beyond its index entry.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The hash of the body that `made` and `verified` refer to.
    pub(super) hash: String,
    /// The API server's response to the body, if it differs from it (defaults, quantities).
    pub(super) made: Option<Value>,
    /// The uid and generation that last contained the whole body; for kinds whose index entry is incomplete.
    pub(super) verified: Option<(String, i64)>,
}

impl Applier {
    /// Reports whether `live` contains everything in `body`.
    pub(super) fn holds(&self, key: &ObjectKey, body: &Value, live: &Value) -> bool {
        let hash = body_hash(body);
        if object::annotation(live, names::APPLIED_HASH) != Some(&hash) {
            return false;
        }
        if self.is_verified(key, body, live) {
            return true;
        }
        let mut memory = self.memory.lock();
        let remembered = memory.entry(key.clone()).or_default();
        if remembered.hash != hash {
            *remembered = Memory {
                hash,
                ..Memory::default()
            };
        }
        let holds = covers(body, live, remembered.made.as_ref());
        remembered.verified = holds.then(|| version(live)).flatten();
        holds
    }

    pub(super) fn is_verified(&self, key: &ObjectKey, body: &Value, live: &Value) -> bool {
        let hash = body_hash(body);
        let memory = self.memory.lock();
        memory.get(key).is_some_and(|remembered| {
            remembered.hash == hash
                && object::annotation(live, names::APPLIED_HASH) == Some(&hash)
                && FieldOwner::name_in_label(live) == FieldOwner::name_in_label(body)
                && AppliedAs::from_object(live) == AppliedAs::from_object(body)
                && remembered.verified.is_some()
                && remembered.verified == version(live)
        })
    }

    pub(super) fn remember(&self, key: &ObjectKey, body: &Value, made: &Value) {
        let plain = covers(body, made, None);
        let memory = Memory {
            hash: body_hash(body),
            made: (!plain).then(|| without_bookkeeping(made)),
            verified: version(made),
        };
        self.memory.lock().insert(key.clone(), memory);
    }
}

/// Returns uid and generation; `None` for kinds without a generation.
fn version(object: &Value) -> Option<(String, i64)> {
    let uid = object::text(object, "/metadata/uid")?.to_owned();
    Some((uid, object.pointer("/metadata/generation")?.as_i64()?))
}

pub(super) fn without_bookkeeping(made: &Value) -> Value {
    let mut made = made.clone();
    if let Some(object) = made.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = made.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    made
}
