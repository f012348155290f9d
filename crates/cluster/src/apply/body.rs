//! What is sent of an object that is applied.

use serde_json::{Value, json};
use windlass_crd::claims::AppliedAs;
use windlass_object::{ObjectKey, names};

use super::{applicant::Applicant, difference::body_hash, replicas::leave_to_owner};

/// `desired` with the marks of its owner and the hash of itself, and without what others decide on in `live`.
pub(super) fn owned(desired: &Value, owner: &Applicant, live: &Value) -> Value {
    let mut body = desired.clone();
    leave_to_owner(&mut body, live);
    let mark = ObjectKey::of(desired).map(|key| AppliedAs::new(&owner.uid, &key));
    if let Some(body) = body.as_object_mut() {
        body.remove("status");
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        // What only the API server may say; bundles carry leftovers of it.
        for field in [
            "creationTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "selfLink",
            "uid",
        ] {
            metadata.remove(field);
        }
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

/// What is applied of `desired` for `owner` where nothing is there yet.
pub fn body_of(desired: &Value, owner: &Applicant) -> Value {
    owned(desired, owner, &Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_object::object;

    fn owner() -> Applicant {
        Applicant {
            bundle_deployment: "a".into(),
            uid: "1".into(),
            ..Applicant::default()
        }
    }

    #[test]
    fn the_hash_is_the_same_for_the_same_body() {
        let desired = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "creationTimestamp": null}, "status": {}
        });
        let body = owned(&desired, &owner(), &Value::Null);
        assert_eq!(owned(&body, &owner(), &Value::Null), body);
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
