//! Writing a status, and telling what is news in it.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use windlass_object::ObjectKey;

/// What was said last about each object. A watch may go on showing the status from before a write of ours: what that
/// has said is not news again.
#[derive(Default)]
pub(super) struct Announced(Mutex<HashMap<ObjectKey, String>>);

// === impl Announced ===

impl Announced {
    /// Whether `word` is news about `object`, of which a watch shows `known`. It is none from now on.
    pub(super) fn is_news(&self, object: &ObjectKey, word: &str, known: Option<&str>) -> bool {
        let said = self.0.lock().insert(object.clone(), word.to_owned());
        said.as_deref().or(known) != Some(word)
    }

    /// Whether something was said about `object`, and is not forgotten.
    pub(super) fn has_said(&self, object: &ObjectKey) -> bool {
        self.0.lock().contains_key(object)
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&self, object: &ObjectKey) {
        self.0.lock().remove(object);
    }
}

/// What turns the status `known` into `status`, as a merge patch: fields that are no longer there are null.
///
/// # Errors
///
/// When one of them cannot be written as JSON.
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
    fn what_was_said_is_no_news_however_late_a_watch_is() {
        let announced = Announced::default();
        let object = kinds::BUNDLE_DEPLOYMENT.object(None, "a");
        assert!(
            !announced.is_news(&object, "Ready", Some("Ready")),
            "said by the one before"
        );
        assert!(announced.is_news(&object, "RollingOut", Some("Ready")));
        assert!(
            !announced.is_news(&object, "RollingOut", Some("Ready")),
            "a late watch"
        );
        assert!(
            announced.is_news(&object, "Ready", Some("Ready")),
            "a late watch, and back"
        );
        announced.forget(&object);
        assert!(announced.is_news(&object, "Ready", None));
    }

    #[test]
    fn fields_that_are_gone_become_null_at_any_depth() {
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
        fn the_patch_makes_the_status(known in status(), status in status()) {
            let mut patched = known.clone();
            json_patch::merge(&mut patched, &merge_patch(&known, &status).unwrap());
            prop_assert_eq!(patched, status);
        }
    }
}
