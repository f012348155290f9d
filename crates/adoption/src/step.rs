//! One write, and how to take it back.

use json_patch::Patch;
use serde_json::Value;
use windlass_object::{ObjectKey, json, object, patch};

/// One write of an adoption.
#[derive(Clone, Debug, PartialEq)]
pub struct AdoptionStep {
    /// What is written.
    pub write: AdoptionWrite,
    /// What puts back what was there; `None` where that cannot be put back.
    pub undo: Option<AdoptionWrite>,
    /// Why it is written, in a few words.
    pub reason: &'static str,
}

/// What is written to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum AdoptionWrite {
    /// A JSON patch that says by a test of what it was made.
    Patch {
        /// The object.
        object: ObjectKey,
        /// The patch.
        patch: Patch,
    },
    /// The object with this uid is deleted.
    Delete {
        /// The object.
        object: ObjectKey,
        /// `metadata.uid`, without which another one of that name would be deleted.
        uid: String,
        /// Whether what it owns stays, and no longer names it as its owner.
        orphan: bool,
    },
    /// The object is created.
    Create(Value),
}

// === impl AdoptionStep ===

impl AdoptionStep {
    /// Changes labels and annotations of `live`; null takes one away. Nothing where that changes nothing.
    pub(crate) fn relabel(
        live: &Value,
        labels: &Value,
        annotations: &Value,
        reason: &'static str,
    ) -> Option<Self> {
        let object = ObjectKey::from_object(live)?;
        let (labels, annotations) = (
            changes(live, "/metadata/labels", labels),
            changes(live, "/metadata/annotations", annotations),
        );
        if labels.is_empty() && annotations.is_empty() {
            return None;
        }
        let before = |path: &str, changed: &[(&str, &Value)]| -> Value {
            let was = |name: &str| object::at(live, path).and_then(|there| there.get(name)).cloned();
            let entries = changed.iter();
            entries
                .map(|(name, _)| ((*name).to_owned(), was(name).unwrap_or_default()))
                .collect()
        };
        let back = (
            before("/metadata/labels", &labels),
            before("/metadata/annotations", &annotations),
        );
        let written = |changed: &[(&str, &Value)]| -> Value {
            changed
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).clone()))
                .collect()
        };
        Some(Self {
            write: AdoptionWrite::Patch {
                object: object.clone(),
                patch: patch::relabelled(live, &written(&labels), &written(&annotations)),
            },
            undo: Some(AdoptionWrite::Patch {
                object,
                patch: undone(live, &back),
            }),
            reason,
        })
    }

    /// Deletes `live`, with what it owns.
    pub(crate) fn delete(live: &Value, reason: &'static str) -> Option<Self> {
        Some(Self {
            write: AdoptionWrite::Delete {
                object: ObjectKey::from_object(live)?,
                uid: object::text(live, "/metadata/uid")?.to_owned(),
                orphan: false,
            },
            undo: Some(AdoptionWrite::Create(restored(live))),
            reason,
        })
    }

    /// The object that is written to.
    pub fn object(&self) -> Option<ObjectKey> {
        match &self.write {
            AdoptionWrite::Patch { object, .. } | AdoptionWrite::Delete { object, .. } => {
                Some(object.clone())
            }
            AdoptionWrite::Create(object) => ObjectKey::from_object(object),
        }
    }
}

/// The changes that change something.
fn changes<'a>(live: &Value, path: &str, wanted: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let there = |name: &str| object::at(live, path).and_then(|there| there.get(name)).cloned();
    let wanted = wanted.as_object().into_iter().flatten();
    let wanted = wanted.filter(|(name, value)| there(name).unwrap_or_default() != **value);
    wanted.map(|(name, value)| (name.as_str(), value)).collect()
}

/// What takes a change of labels and annotations back. It is guarded by the uid, since the change has another resourceVersion.
fn undone(live: &Value, (labels, annotations): &(Value, Value)) -> Patch {
    let mut changed = live.clone();
    let fields = [("labels", labels), ("annotations", annotations)];
    for (field, before) in fields {
        let entries = json::fields(&mut changed, &["metadata", field]);
        // A patch takes away only what is there, and puts back what may be there.
        for (name, _) in before.as_object().into_iter().flatten() {
            entries.insert(name.clone(), Value::String(String::new()));
        }
    }
    let mut operations = vec![patch::test("/metadata/uid", &live["metadata"]["uid"])];
    for (field, before) in fields {
        operations.extend(patch::changed_entries(
            &changed,
            &format!("/metadata/{field}"),
            before,
        ));
    }
    Patch(operations)
}

/// The object as it can be created again.
pub(crate) fn restored(live: &Value) -> Value {
    let mut object = live.clone();
    json::drop_live_fields(&mut object);
    let kept = ["name", "namespace", "labels", "annotations"];
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| kept.contains(&name.as_str()));
    }
    object
}

/// Takes labels or annotations away.
pub(crate) fn without(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| ((*name).to_owned(), Value::Null))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_changed_is_put_back() {
        let live = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "n", "uid": "1",
            "resourceVersion": "7", "labels": {"gone": "a", "kept": "b"}}});
        let step = AdoptionStep::relabel(
            &live,
            &json!({"gone": null, "never": null, "kept": "b"}),
            &json!({"new": "c"}),
            "",
        );
        let Some(AdoptionStep {
            write: AdoptionWrite::Patch { object, patch },
            undo: Some(AdoptionWrite::Patch { patch: undo, .. }),
            ..
        }) = step
        else {
            panic!("no patch");
        };
        assert_eq!(object.to_string(), "Service n/a");
        let mut changed = live.clone();
        json_patch::patch(&mut changed, &patch).unwrap();
        assert_eq!(changed["metadata"]["labels"], json!({"kept": "b"}));
        assert_eq!(changed["metadata"]["annotations"], json!({"new": "c"}));
        changed["metadata"]["resourceVersion"] = "8".into();
        json_patch::patch(&mut changed, &undo).unwrap();
        assert_eq!(changed["metadata"]["labels"], live["metadata"]["labels"]);
        assert_eq!(changed["metadata"]["annotations"], json!({}));
        let nothing = AdoptionStep::relabel(&live, &json!({"never": null}), &json!({}), "");
        assert_eq!(nothing, None);
    }
}
