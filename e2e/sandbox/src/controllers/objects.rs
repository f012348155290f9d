//! Helpers that read fields of objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::server::condition;

/// Returns a string in `metadata`; empty when it is absent.
pub(super) fn metadata<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(super) fn name(object: &Value) -> &str {
    metadata(object, "name")
}

pub(super) fn namespace(object: &Value) -> &str {
    metadata(object, "namespace")
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Reports whether `owner` is the controller of `object`.
pub(super) fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    owners
        .into_iter()
        .any(|reference| reference["controller"] == true && reference["uid"] == owner["metadata"]["uid"])
}

/// Returns an owner reference that makes `owner` the controller of an object.
pub(super) fn controller_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// Reports whether a pod has succeeded or failed.
pub(super) fn is_finished(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready") == Some("True")
}

/// Reports whether a pod has been ready for at least `seconds`.
pub(super) fn is_available(pod: &Value, seconds: i64) -> bool {
    if !is_ready(pod) {
        return false;
    }
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let since = conditions
        .filter(|condition| condition["type"] == "Ready")
        .find_map(|condition| {
            condition["lastTransitionTime"]
                .as_str()?
                .parse::<Timestamp>()
                .ok()
        });
    seconds == 0 || since.is_some_and(|since| Timestamp::now().as_second() - since.as_second() >= seconds)
}

/// Returns a number in an object; 0 when it is absent.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns a deterministic short name for `text`, of letters that form no words.
pub(super) fn short_hash(text: &str, length: usize) -> String {
    use sha2::{Digest, Sha256};
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(text);
    digest
        .iter()
        .take(length)
        .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]))
        .collect()
}
