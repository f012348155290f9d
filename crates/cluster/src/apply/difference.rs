//! Comparison of live objects with bodies.

use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_object::{names, text::hexadecimal};

/// Returns the SHA-256 of a body, in hexadecimal, without the annotations for the hash itself and for the
/// owning BundleDeployment.
pub fn body_hash(body: &Value) -> String {
    let mut body = body.clone();
    if let Some(annotations) = body
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.shift_remove(names::APPLIED_HASH);
        annotations.shift_remove(names::APPLIED_AS);
    }
    body.sort_all_objects();
    hexadecimal(&Sha256::digest(body.to_string()))
}

/// Reports whether `live` contains everything in `body`; it may contain more, except labels in the selector
/// of a Service, which is a single value to the API server (`mapType=atomic`): with another label it would
/// select nothing.
///
/// `made` is the API server's response to `body`: where it differs (a default, a quantity, a list with
/// entries of others), its values count as the body's.
pub fn covers(body: &Value, live: &Value, made: Option<&Value>) -> bool {
    covers_at(body, Some(live), made.map(Some))
}

/// `made`: `None` if nothing is remembered; `Some(None)` if the API server omitted the field.
fn covers_at(body: &Value, live: Option<&Value>, made: Option<Option<&Value>>) -> bool {
    if made.is_some_and(|made| made == live) {
        return true;
    }
    match (body, live) {
        (Value::Object(body), Some(Value::Object(live))) => body.iter().all(|(name, value)| {
            let made = made.map(|made| made.and_then(|made| made.get(name)));
            let live = live.get(name);
            covers_at(value, live, made) && (!is_selector(name, value) || live == Some(value))
        }),
        (Value::Array(body), Some(Value::Array(live))) => {
            body.len() == live.len()
                && body.iter().zip(live).enumerate().all(|(index, (value, live))| {
                    let made = made.map(|made| made.and_then(|made| made.get(index)));
                    covers_at(value, Some(live), made)
                })
        }
        (value, None) => is_empty(value),
        (value, Some(live)) => value == live || (is_empty(value) && is_empty(live)),
    }
}

/// Reports whether a field is a plain label selector, as in Services.
fn is_selector(name: &str, value: &Value) -> bool {
    let labels = value.as_object().filter(|labels| !labels.is_empty());
    name == "selector" && labels.is_some_and(|labels| labels.values().all(Value::is_string))
}

/// Reports whether the API server drops the value.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn live_objects_may_have_additional_values_only() {
        let body = json!({"spec": {"replicas": 2, "list": [{"name": "a"}], "nothing": null, "empty": {}}});
        for (live, expected) in [
            (
                json!({"spec": {"replicas": 2, "list": [{"name": "a", "default": 1}], "more": 1}, "status": {}}),
                true,
            ),
            (json!({"spec": {"replicas": 3, "list": [{"name": "a"}]}}), false),
            (json!({"spec": {"replicas": 2, "list": []}}), false),
            (
                json!({"spec": {"replicas": 2, "list": [{"name": "a"}, {"name": "b"}]}}),
                false,
            ),
            (json!({"spec": {"list": [{"name": "a"}]}}), false),
        ] {
            assert_eq!(covers(&body, &live, None), expected, "{live}");
        }
    }

    #[test]
    fn service_selectors_must_be_equal() {
        let service = json!({"spec": {"selector": {"a": "b"}}});
        let policy = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}});
        assert!(covers(&service, &service, None));
        let more = json!({"spec": {"selector": {"a": "b", "c": "d"}}});
        assert!(!covers(&service, &more, None));
        let more = json!({"spec": {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": []}}});
        assert!(covers(&policy, &more, None));
    }

    #[test]
    fn normalized_values_count_as_the_body() {
        let body = json!({"cpu": "1000m", "stringData": {"a": "b"}, "replicas": 1});
        let made = json!({"cpu": "1", "replicas": 1});
        assert!(!covers(&body, &made, None));
        assert!(covers(&body, &made, Some(&made)));
        let drifted = json!({"cpu": "2", "replicas": 1});
        assert!(!covers(&body, &drifted, Some(&made)));
        let drifted = json!({"cpu": "1", "replicas": 3});
        assert!(!covers(&body, &drifted, Some(&made)));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c]{0,3}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_object_covers_itself(object in json()) {
            prop_assert!(covers(&object, &object, None));
        }

        #[test]
        fn a_response_covers_its_body(body in json(), made in json()) {
            prop_assert!(covers(&body, &made, Some(&made)));
        }

        #[test]
        fn the_order_of_fields_does_not_change_the_hash(fields in prop::collection::btree_map("[a-f]", json(), 0..6)) {
            let forward = Value::Object(fields.clone().into_iter().collect());
            let backward = Value::Object(fields.into_iter().rev().collect());
            prop_assert_eq!(body_hash(&forward), body_hash(&backward));
        }
    }
}
