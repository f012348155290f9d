//! Helpers for reporting: patches of a status, and deduplication of events.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use windlass_object::ObjectKey;

/// Last announcement about each object. A late watch may still deliver an older status, which must not repeat
/// an announcement.
#[derive(Default)]
pub(super) struct Announced(Mutex<HashMap<ObjectKey, String>>);

impl Announced {
    /// Reports whether `announcement` is new for `object`, whose watched status says `known`, and remembers
    /// it.
    pub(super) fn is_news(&self, object: &ObjectKey, announcement: &str, known: Option<&str>) -> bool {
        let last = self.0.lock().insert(object.clone(), announcement.to_owned());
        last.as_deref().or(known) != Some(announcement)
    }

    /// Reports whether an announcement about `object` is remembered.
    pub(super) fn has_announced(&self, object: &ObjectKey) -> bool {
        self.0.lock().contains_key(object)
    }

    pub(super) fn forget(&self, object: &ObjectKey) {
        self.0.lock().remove(object);
    }
}

/// Returns the merge patch that turns the status `known` into `status`. Removed fields become null.
///
/// # Errors
///
/// If a status cannot be written as JSON.
pub(super) fn merge_patch<S: Serialize>(known: &S, status: &S) -> Result<Value, serde_json::Error> {
    let known = serde_json::to_value(known)?;
    let mut patch = serde_json::to_value(status)?;
    remove_missing(&known, &mut patch);
    Ok(patch)
}

fn remove_missing(known: &Value, patch: &mut Value) {
    let (Some(known), Some(patch)) = (known.as_object(), patch.as_object_mut()) else {
        return;
    };
    for (field, value) in known {
        match patch.get_mut(field) {
            Some(kept) => remove_missing(value, kept),
            None => {
                patch.insert(field.clone(), Value::Null);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use windlass_cluster::kinds;

    #[test]
    fn a_late_watch_does_not_repeat_an_announcement() {
        let announced = Announced::default();
        let object = kinds::BUNDLE_DEPLOYMENT.object(None, "a");
        assert!(
            !announced.is_news(&object, "Ready", Some("Ready")),
            "announced by the previous process"
        );
        assert!(announced.is_news(&object, "RollingOut", Some("Ready")));
        assert!(
            !announced.is_news(&object, "RollingOut", Some("Ready")),
            "a late watch does not repeat it"
        );
        assert!(
            announced.is_news(&object, "Ready", Some("Ready")),
            "a return to the watched status is new"
        );
        announced.forget(&object);
        assert!(announced.is_news(&object, "Ready", None));
    }

    #[test]
    fn removed_fields_become_null_at_any_depth() {
        let known = json!({"phase": "Stable", "ca": {"current": 1, "next": 2}, "list": [1]});
        let status = json!({"ca": {"current": 1}, "list": []});
        assert_eq!(
            merge_patch(&known, &status).unwrap(),
            json!({"phase": null, "ca": {"current": 1, "next": null}, "list": []})
        );
    }

    fn status() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), "[a-c]".prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|fields| json!(fields))
        })
    }

    proptest! {
        #[test]
        fn the_patch_turns_one_status_into_the_other(known in status(), status in status()) {
            let mut patched = known.clone();
            json_patch::merge(&mut patched, &merge_patch(&known, &status).unwrap());
            prop_assert_eq!(patched, status);
        }
    }
}
