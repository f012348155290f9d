//! Bodies of apply requests.

use serde_json::{Value, json};
use windlass_crd::claims::AppliedAs;
use windlass_object::{ObjectKey, json, names};

use super::{difference::body_hash, field_owner::FieldOwner, replicas::leave_to_owner};

/// Metadata that only the API server sets.
const SERVER_METADATA: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Labels and annotations that mark applied objects.
const MARKS: [(&str, &[&str]); 2] = [
    ("labels", &[names::BUNDLE_DEPLOYMENT]),
    ("annotations", &[names::APPLIED_AS, names::APPLIED_HASH]),
];

/// Returns `desired` with the marks of its owner and its hash, and without the fields that others control in
/// `live`.
pub(super) fn owned_body(desired: &Value, owner: &FieldOwner, live: &Value) -> Value {
    let mut body = desired.clone();
    leave_to_owner(&mut body, live);
    let mark = ObjectKey::from_object(desired).map(|key| AppliedAs::new(&owner.uid, &key));
    drop_server_fields(&mut body);
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["labels", "annotations"] {
            if !metadata.get(field).is_some_and(Value::is_object) {
                metadata.insert(field.to_owned(), json!({}));
            }
        }
        metadata["labels"][names::BUNDLE_DEPLOYMENT] = owner.bundle_deployment.clone().into();
        if let Some(mark) = mark {
            metadata["annotations"][names::APPLIED_AS] = mark.to_string().into();
        }
        let hash = body_hash(&body);
        body["metadata"]["annotations"][names::APPLIED_HASH] = hash.into();
    }
    body
}

/// Prepares `answer` to replace `body`: with the same marks, and without fields that cannot be applied.
pub(super) fn with_marks_of(body: &Value, mut answer: Value) -> Value {
    drop_server_fields(&mut answer);
    for (field, marks) in MARKS {
        let marked = json::fields(&mut answer, &["metadata", field]);
        for mark in marks {
            match body["metadata"][field].get(mark) {
                Some(value) => marked.insert((*mark).to_owned(), value.clone()),
                None => marked.shift_remove(*mark),
            };
        }
    }
    answer
}

/// Bundles, and objects from the API server, contain these fields.
fn drop_server_fields(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVER_METADATA {
            metadata.remove(field);
        }
    }
}

/// Returns the body to apply for `desired` if the object does not exist.
pub fn apply_body(desired: &Value, owner: &FieldOwner) -> Value {
    owned_body(desired, owner, &Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_object::object;

    fn owner() -> FieldOwner {
        FieldOwner {
            bundle_deployment: "a".into(),
            uid: "1".into(),
            ..FieldOwner::default()
        }
    }

    #[test]
    fn equal_bodies_have_equal_hashes() {
        let desired = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "creationTimestamp": null}, "status": {}
        });
        let body = owned_body(&desired, &owner(), &Value::Null);
        assert_eq!(owned_body(&body, &owner(), &Value::Null), body);
        assert_eq!(
            object::annotation(&body, names::APPLIED_AS),
            Some("1/ConfigMap//c")
        );
        assert_eq!(body.get("status"), None);
        assert_eq!(
            body["metadata"]["labels"],
            json!({"windlass.dev/bundle-deployment": "a"})
        );
        let hash = body["metadata"]["annotations"][names::APPLIED_HASH]
            .as_str()
            .unwrap();
        assert_eq!(hash, body_hash(&desired_with_label()));
    }

    fn desired_with_label() -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "annotations": {}, "labels": {"windlass.dev/bundle-deployment": "a"}}
        })
    }
}
