//! Single writes of an adoption, with their undo.

use json_patch::Patch;
use serde_json::Value;
use windlass_object::{ObjectKey, json, object, patch};

/// A write of an adoption.
#[derive(Clone, Debug, PartialEq)]
pub struct AdoptionStep {
    /// The write to send.
    pub write: AdoptionWrite,
    /// The write that undoes this one; `None` if it cannot be undone.
    pub undo: Option<AdoptionWrite>,
    /// Reason for the write, in a few words.
    pub reason: &'static str,
}

/// A write to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum AdoptionWrite {
    /// A JSON patch, guarded by a test of the observed state.
    Patch {
        /// Key of the object.
        object: ObjectKey,
        /// The JSON patch.
        patch: Patch,
    },
    /// Deletion of the object with this uid.
    Delete {
        /// Key of the object.
        object: ObjectKey,
        /// `metadata.uid`, which protects another object of the same name.
        uid: String,
        /// Whether the garbage collector keeps the dependents of the object.
        orphan: bool,
    },
    /// Creation of the object.
    Create(Value),
}

impl AdoptionStep {
    /// Changes labels and annotations of `live`; null removes an entry. `None` if nothing would change.
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
                patch: undo_patch(live, &back),
            }),
            reason,
        })
    }

    /// Deletes `live` and its dependents.
    pub(crate) fn delete(live: &Value, reason: &'static str) -> Option<Self> {
        Some(Self {
            write: AdoptionWrite::Delete {
                object: ObjectKey::from_object(live)?,
                uid: object::text(live, "/metadata/uid")?.to_owned(),
                orphan: false,
            },
            undo: Some(AdoptionWrite::Create(recreatable(live))),
            reason,
        })
    }

    /// Returns the object of the write.
    pub fn object(&self) -> Option<ObjectKey> {
        match &self.write {
            AdoptionWrite::Patch { object, .. } | AdoptionWrite::Delete { object, .. } => {
                Some(object.clone())
            }
            AdoptionWrite::Create(object) => ObjectKey::from_object(object),
        }
    }
}

/// Returns the entries that differ from `live`.
fn changes<'a>(live: &Value, path: &str, wanted: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let there = |name: &str| object::at(live, path).and_then(|there| there.get(name)).cloned();
    let wanted = wanted.as_object().into_iter().flatten();
    let wanted = wanted.filter(|(name, value)| there(name).unwrap_or_default() != **value);
    wanted.map(|(name, value)| (name.as_str(), value)).collect()
}

/// Returns the patch that undoes a change of labels and annotations. It is guarded by the uid, since the
/// change alters the resourceVersion.
fn undo_patch(live: &Value, (labels, annotations): &(Value, Value)) -> Patch {
    let mut changed = live.clone();
    let fields = [("labels", labels), ("annotations", annotations)];
    for (field, before) in fields {
        let entries = json::fields(&mut changed, &["metadata", field]);
        // Every changed entry has to exist in the base of the patch, so that it is removed or replaced.
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

/// Returns the object in a form that can be created again.
pub(crate) fn recreatable(live: &Value) -> Value {
    let mut object = live.clone();
    json::drop_live_fields(&mut object);
    let kept = ["name", "namespace", "labels", "annotations"];
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| kept.contains(&name.as_str()));
    }
    object
}

/// Returns a change that removes labels or annotations.
pub(crate) fn removals(names: &[&str]) -> Value {
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
    fn changed_entries_are_restored() {
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
