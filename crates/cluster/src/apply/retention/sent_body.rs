//! Computation of the body to send.

use serde_json::{Map, Value};

use super::{
    field_managers::{FieldManagers, Granularity, is_same_key},
    kept_values::same,
};

/// The body to apply for an object with retained values.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::apply) struct SentBody {
    pub(in crate::apply) body: Value,
    /// Whether it is valid only for the resourceVersion that was read.
    pub(in crate::apply) guarded: bool,
}

/// The three values to compare.
#[derive(Clone, Copy)]
struct Values<'a> {
    desired: Option<&'a Value>,
    answer: Option<&'a Value>,
    live: Option<&'a Value>,
}

/// The part of the body for one value.
#[derive(Default)]
struct Part {
    value: Option<Value>,
    guarded: bool,
    /// An omitted value has no owner.
    unowned: bool,
}

/// Computes the body to apply for `answer`, which is `desired` with the values to retain from `live`. It
/// contains all desired values that no other manager controls, and those retained values that would be
/// removed otherwise.
pub(super) fn body_to_send(desired: &Value, answer: &Value, live: &Value) -> SentBody {
    let values = Values {
        desired: Some(desired),
        answer: Some(answer),
        live: Some(live),
    };
    let part = sent_part(values, &FieldManagers::from_object(live), &mut Vec::new());
    SentBody {
        body: part.value.unwrap_or_default(),
        guarded: part.guarded,
    }
}

fn sent_part<'a>(values: Values<'a>, owners: &FieldManagers<'_>, path: &mut Vec<&'a str>) -> Part {
    if same(values.desired, values.answer) {
        return Part {
            value: values.desired.cloned(),
            guarded: is_shared(values.desired, values.live, owners),
            unowned: false,
        };
    }
    let Some(answer) = values.answer else {
        return Part::default();
    };
    let is_partly_desired = |like: fn(&Value) -> bool| {
        values.desired.is_none_or(like) && like(answer) && values.live.is_some_and(like)
    };
    let granularity = owners.granularity(answer);
    let has_fields = granularity == Granularity::Fields || has_fields(path) && !owners.is_atomic(answer);
    let part = if has_fields && is_partly_desired(Value::is_object) {
        object_part(values, answer, owners, path)
    } else if let (Granularity::Items(keys), true) = (&granularity, is_partly_desired(is_list_of_objects)) {
        items_part(values, owners, keys, path)
    } else if granularity == Granularity::Set && is_partly_desired(Value::is_array) {
        set_part(values, owners)
    } else {
        return whole(values, answer, owners);
    };
    // If Windlass releases all its fields of the object, the API server removes the object with its unowned
    // fields.
    if part.value.is_none() && part.unowned && owners.include_windlass() && !owners.include_others() {
        return Part {
            value: Some(answer.clone()),
            guarded: true,
            unowned: false,
        };
    }
    part
}

/// Reports whether others own a value that equals the desired one. It may be retained nevertheless, so a
/// concurrent change by them must not be reverted.
fn is_shared(desired: Option<&Value>, live: Option<&Value>, owners: &FieldManagers<'_>) -> bool {
    let (Some(desired), Some(live)) = (desired, live) else {
        return false;
    };
    if !owners.include_others() {
        return false;
    }
    match (desired, live) {
        (Value::Object(fields), Value::Object(live)) if !owners.is_atomic(desired) => fields
            .iter()
            .any(|(name, value)| is_shared(Some(value), live.get(name), &owners.field(name))),
        // Checks all items: an unnecessary guard costs another attempt, a missing one a value.
        (Value::Array(_), Value::Array(_)) => true,
        _ => desired == live,
    }
}

/// Reports whether every kind has separate fields at this path, even if they have no owner.
fn has_fields(path: &[&str]) -> bool {
    matches!(
        path,
        [] | ["metadata" | "spec"] | ["metadata", "labels" | "annotations"]
    )
}

fn whole(values: Values<'_>, answer: &Value, owners: &FieldManagers<'_>) -> Part {
    let is_kept = values.answer == values.live;
    let is_unowned = !owners.include_windlass() && !owners.include_others();
    // A value without owner may have parts that others can own: the desired parts would be lost.
    let holds_desired = is_unowned
        && values
            .desired
            .is_some_and(|desired| desired.is_object() || desired.is_array());
    if is_kept && owners.remain_without_windlass() && !holds_desired {
        return Part {
            value: None,
            guarded: owners.include_windlass(),
            unowned: is_unowned,
        };
    }
    Part {
        value: Some(answer.clone()),
        guarded: true,
        unowned: false,
    }
}

fn object_part<'a>(
    values: Values<'a>,
    answer: &'a Value,
    owners: &FieldManagers<'_>,
    path: &mut Vec<&'a str>,
) -> Part {
    let mut sent = Map::new();
    let mut whole = Part::default();
    let own = values.desired.and_then(Value::as_object);
    let given = answer.as_object().into_iter().flatten().map(|(name, _)| name);
    let added = given.filter(|name| own.is_none_or(|own| !own.contains_key(*name)));
    for name in own.into_iter().flatten().map(|(name, _)| name).chain(added) {
        let of = |value: Option<&'a Value>| value.and_then(|value| value.get(name));
        let values = Values {
            desired: of(values.desired),
            answer: of(values.answer),
            live: of(values.live),
        };
        path.push(name);
        let field = sent_part(values, &owners.field(name), path);
        path.pop();
        sent.extend(whole.take(field).map(|value| (name.clone(), value)));
    }
    whole.value = (!sent.is_empty()).then(|| sent.into());
    whole
}

fn items_part<'a>(
    values: Values<'a>,
    owners: &FieldManagers<'_>,
    keys: &[String],
    path: &mut Vec<&'a str>,
) -> Part {
    let mut sent = Vec::new();
    let mut whole = Part::default();
    path.push("");
    for item in objects(values.answer) {
        let of = |list| objects(list).find(|other| is_same_item(item, other, keys));
        let item_values = Values {
            desired: of(values.desired).map(|(value, _)| value),
            answer: Some(item.0),
            live: of(values.live).map(|(value, _)| value),
        };
        let part = sent_part(item_values, &owners.item(item.1, keys), path);
        let Some(mut value) = whole.take(part) else {
            continue;
        };
        // The API server identifies the item by its key.
        if let Some(fields) = value.as_object_mut() {
            for key in keys {
                if let Some(known) = item.1.get(key) {
                    fields.entry(key.clone()).or_insert_with(|| known.clone());
                }
            }
        }
        sent.push(value);
    }
    path.pop();
    whole.value = (!sent.is_empty()).then(|| sent.into());
    whole
}

fn set_part(values: Values<'_>, owners: &FieldManagers<'_>) -> Part {
    let has = |list: Option<&Value>, item| {
        list.and_then(Value::as_array)
            .is_some_and(|list| list.contains(item))
    };
    let mut sent = Vec::new();
    let mut whole = Part::default();
    for item in values.answer.and_then(Value::as_array).into_iter().flatten() {
        let of = |list| has(list, item).then_some(item);
        let values = Values {
            desired: of(values.desired),
            answer: Some(item),
            live: of(values.live),
        };
        sent.extend(whole.take(sent_part(values, &owners.element(item), &mut vec![""])));
    }
    whole.value = (!sent.is_empty()).then(|| sent.into());
    whole
}

impl Part {
    /// Merges the flags of a part, and returns its value.
    fn take(&mut self, part: Self) -> Option<Value> {
        self.guarded |= part.guarded;
        self.unowned |= part.unowned && part.value.is_none();
        part.value
    }
}

fn objects(list: Option<&Value>) -> impl Iterator<Item = (&Value, &Map<String, Value>)> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| Some((item, item.as_object()?)))
}

fn is_list_of_objects(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|items| items.iter().all(Value::is_object))
}

/// Reports whether two items of lists are the same item to the API server.
fn is_same_item(
    one: (&Value, &Map<String, Value>),
    other: &(&Value, &Map<String, Value>),
    keys: &[String],
) -> bool {
    keys.iter()
        .all(|key| is_same_key(one.1.get(key), other.1.get(key)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_object::names;

    use super::*;

    /// An object with these fields, and the fields that Windlass and another manager own.
    fn live(spec: &Value, ours: &Value, others: &Value) -> Value {
        let entry = |manager: &str, operation: &str, fields: &Value| {
            json!({"manager": manager, "operation": operation, "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}})
        };
        let mut entries = vec![
            entry(names::INSTALL, "Apply", ours),
            entry("other", "Update", others),
        ];
        // Empty values have no owner.
        entries.retain(|entry| entry["fieldsV1"]["f:spec"] != json!({}));
        json!({"apiVersion": "v1", "metadata": {"managedFields": entries}, "spec": spec})
    }

    /// Returns the sent spec, and whether it is guarded.
    fn sent(desired: &Value, answer: &Value, live: &Value) -> (Value, bool) {
        let object = |spec: &Value| json!({"apiVersion": "v1", "metadata": {"name": "a"}, "spec": spec});
        let mut sent = body_to_send(&object(desired), &object(answer), live);
        assert_eq!(sent.body["metadata"], json!({"name": "a"}));
        (sent.body["spec"].take(), sent.guarded)
    }

    #[test]
    fn a_kept_value_is_sent_only_if_it_would_be_removed() {
        let replicas = json!({"f:replicas": {}});
        let none = json!({});
        for (case, ours, others, expected) in [
            ("others'", &none, &replicas, (json!({"a": 1}), false)),
            ("unowned", &none, &none, (json!({"a": 1}), false)),
            ("ours, too", &replicas, &replicas, (json!({"a": 1}), true)),
            (
                "ours alone",
                &replicas,
                &none,
                (json!({"a": 1, "replicas": 5}), true),
            ),
        ] {
            let live = live(&json!({"a": 1, "replicas": 5}), ours, others);
            let answer = json!({"a": 1, "replicas": 5});
            for desired in [json!({"a": 1, "replicas": 1}), json!({"a": 1})] {
                assert_eq!(sent(&desired, &answer, &live), expected, "{case} {desired}");
            }
            // A value that is neither live nor desired comes from the retention.
            let answer = json!({"a": 1, "replicas": 3});
            let expected = (answer.clone(), true);
            assert_eq!(sent(&json!({"a": 1}), &answer, &live), expected, "{case}");
        }
    }

    #[test]
    fn values_with_an_entry_of_another_version_are_sent() {
        let mut live = live(
            &json!({"replicas": 5}),
            &json!({"f:old": {}}),
            &json!({"f:replicas": {}}),
        );
        live["metadata"]["managedFields"][0]["apiVersion"] = "v1beta1".into();
        let expected = (json!({"replicas": 5}), true);
        assert_eq!(
            sent(&json!({"replicas": 1}), &json!({"replicas": 5}), &live),
            expected
        );
    }

    #[test]
    fn values_without_owner_are_sent_if_they_would_be_removed() {
        let spec = json!({"o": {"a": 1, "b": 2, "deep": {"c": 3}}, "x": 1});
        let kept = json!({"o": {"b": 2, "deep": {"c": 3}}, "x": 1});
        let ours = json!({"f:o": {"f:a": {}}, "f:x": {}});
        for (others, expected) in [
            (json!({}), (kept.clone(), true)),
            (json!({"f:o": {"f:b": {}}}), (json!({"x": 1}), false)),
        ] {
            let live = live(&spec, &ours, &others);
            assert_eq!(sent(&json!({"x": 1}), &kept, &live), expected, "{others}");
        }
        // A field of this object is retained.
        let live = live(&spec, &json!({"f:o": {"f:a": {}}, "f:x": {}}), &json!({}));
        let desired = json!({"o": {"a": 2}, "x": 1});
        let answer = json!({"o": {"a": 2, "b": 2}, "x": 1});
        assert_eq!(sent(&desired, &answer, &live), (desired, false));
    }

    #[test]
    fn atomic_values_are_kept_or_sent_as_a_whole() {
        let both = json!({"selector": {"a": "b", "c": "d"}, "args": ["x", "y"]});
        let desired = json!({"selector": {"a": "b"}, "args": ["x"]});
        let fields = json!({"f:selector": {}, "f:args": {}});
        for (ours, others, expected) in [
            (&fields, &json!({}), (both.clone(), true)),
            (&json!({}), &fields, (Value::Null, false)),
            (&fields, &fields, (Value::Null, true)),
            // The API server may treat the value as atomic or by field.
            (&json!({}), &json!({}), (both.clone(), true)),
        ] {
            let live = live(&both, ours, others);
            assert_eq!(sent(&desired, &both, &live), expected, "{ours} {others}");
        }
    }

    #[test]
    fn list_items_are_identified_by_their_keys() {
        let port = "k:{\"port\":80,\"protocol\":\"TCP\"}";
        let node_port = |owned: bool| match owned {
            true => json!({"f:ports": {port: {".": {}, "f:port": {}, "f:nodePort": {}}}}),
            false => json!({"f:ports": {port: {".": {}, "f:port": {}}}}),
        };
        let spec = json!({"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30001}]});
        let desired = json!({"ports": [{"port": 80}]});
        let answer = json!({"ports": [{"port": 80, "nodePort": 30001}]});
        let seen = live(&spec, &node_port(false), &json!({}));
        assert_eq!(sent(&desired, &answer, &seen), (desired.clone(), false));
        let seen = live(&spec, &node_port(true), &json!({}));
        assert_eq!(sent(&desired, &answer, &seen), (answer, true));

        let finalizers = json!({"f:finalizers": {"v:\"a\"": {}}});
        let seen = live(&json!({"finalizers": ["a", "b"]}), &finalizers, &json!({}));
        for (desired, answer, expected) in [
            (json!(["a"]), json!(["a", "b"]), (json!(["a"]), false)),
            (json!([]), json!(["a", "b"]), (json!(["a"]), true)),
            (json!(["c"]), json!(["c", "b"]), (json!(["c"]), false)),
        ] {
            let of = |list: Value| json!({ "finalizers": list });
            let expected = (of(expected.0), expected.1);
            assert_eq!(sent(&of(desired), &of(answer), &seen), expected);
        }
    }

    #[test]
    fn only_desired_values_of_others_are_guarded() {
        let ours = json!({"f:a": {}, "f:o": {"f:x": {}}});
        let seen = live(
            &json!({"a": 1, "o": {"x": 1, "y": 1}}),
            &ours,
            &json!({"f:o": {"f:y": {}}}),
        );
        let desired = json!({"a": 1, "o": {"x": 1}});
        assert_eq!(sent(&desired, &desired, &seen), (desired.clone(), false));
        let seen = live(
            &json!({"a": 1, "o": {"x": 1}}),
            &ours,
            &json!({"f:o": {"f:x": {}}}),
        );
        assert_eq!(sent(&desired, &desired, &seen), (desired.clone(), true));
        let drifted = live(
            &json!({"a": 1, "o": {"x": 2}}),
            &ours,
            &json!({"f:o": {"f:x": {}}}),
        );
        assert_eq!(sent(&desired, &desired, &drifted), (desired.clone(), false));
    }
}
