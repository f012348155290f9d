//! Metadata to keep for every kind.

use serde_json::{Map, Value};
use windlass_object::object::annotation;

/// Copies metadata that is always kept, before interpreters run (`objectwatcher.go` of Karmada): what only
/// the API server and controllers of the cluster write, and labels and annotations that others have added.
///
/// Labels and annotations that `resourcetemplate.karmada.io/managed-labels` and `managed-annotations` of the
/// observed object list belong to the desired object: they are removed if the desired object no longer has
/// them.
pub fn retain_metadata(desired: &mut Value, observed: &Value) {
    for name in ["resourceVersion", "finalizers", "ownerReferences"] {
        match observed.pointer(&format!("/metadata/{name}")) {
            Some(value) => desired["metadata"][name] = value.clone(),
            None => {
                let metadata = desired.get_mut("metadata").and_then(Value::as_object_mut);
                metadata.and_then(|metadata| metadata.shift_remove(name));
            }
        }
    }
    for (field, managed) in [
        ("labels", "resourcetemplate.karmada.io/managed-labels"),
        ("annotations", "resourcetemplate.karmada.io/managed-annotations"),
    ] {
        let managed = annotation(observed, managed).unwrap_or_default();
        let managed: Vec<_> = managed.split(',').collect();
        let marks = |object: &Value| object["metadata"][field].as_object().cloned().unwrap_or_default();
        let own = marks(desired);
        let mut all: Map<_, _> = marks(observed)
            .into_iter()
            .filter(|(name, _)| own.contains_key(name) || !managed.contains(&&**name))
            .collect();
        all.extend(own);
        if !all.is_empty() {
            desired["metadata"][field] = Value::Object(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn foreign_metadata_is_kept_and_own_removed_metadata_is_not() {
        let observed = json!({"metadata": {
            "resourceVersion": "7", "finalizers": ["f"],
            "labels": {"theirs": "1", "own": "old", "gone": "x"},
            "annotations": {"resourcetemplate.karmada.io/managed-labels": "own,gone", "note": "n"},
        }});
        let mut desired = json!({"metadata": {"labels": {"own": "new"}, "ownerReferences": [1]}});
        retain_metadata(&mut desired, &observed);
        assert_eq!(
            desired["metadata"]["labels"],
            json!({"theirs": "1", "own": "new"})
        );
        assert_eq!(desired["metadata"]["annotations"]["note"], "n");
        assert_eq!(desired["metadata"]["resourceVersion"], "7");
        assert_eq!(desired["metadata"]["finalizers"], json!(["f"]));
        assert_eq!(desired["metadata"].get("ownerReferences"), None);
    }
}
