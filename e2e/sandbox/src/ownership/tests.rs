use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Write, apply, fields::FieldSet, update};
use crate::schema::TypeSchema;

fn schema() -> TypeSchema {
    TypeSchema::custom(json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "n": {"type": "integer"}, "d": {"type": "string"},
            "o": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                  "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}}}},
        "status": {"type": "object", "properties": {"s": {"type": "string"}}}}}))
}

fn by(manager: &str) -> Write<'_> {
    Write {
        manager,
        subresource: None,
        api_version: "probe.example.com/v1",
        now: Timestamp::UNIX_EPOCH,
    }
}

fn body(spec: Value) -> Value {
    json!({"apiVersion": "probe.example.com/v1", "kind": "Probe", "metadata": {"name": "s"}, "spec": spec})
}

fn owners(object: &Value) -> Vec<(String, String)> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten();
    entries
        .map(|entry| {
            (
                entry["manager"].as_str().unwrap().to_owned(),
                entry["fieldsV1"].to_string(),
            )
        })
        .collect()
}

#[test]
fn unowned_fields_are_removed_with_the_last_owned_sibling() {
    let applied = apply(
        None,
        &body(json!({"n": 1, "o": {"a": "1"}})),
        &by("m1"),
        false,
        &schema(),
    )
    .unwrap();
    let mut both = applied.clone();
    both["spec"]["o"]["b"] = json!("2");
    let both = update(Some(&applied), both, &by("m2"), &schema());
    let without = |object: &Value| apply(Some(object), &body(json!({"n": 1})), &by("m1"), false, &schema());
    assert_eq!(without(&both).unwrap()["spec"], json!({"n": 1, "o": {"b": "2"}}));
    let mut unowned = both;
    let entries = unowned["metadata"]["managedFields"].as_array_mut().unwrap();
    entries.retain(|entry| entry["manager"] != "m2");
    assert_eq!(without(&unowned).unwrap()["spec"], json!({"n": 1}));
}

#[test]
fn fields_that_a_manager_gives_up_are_removed_unless_another_manager_owns_them() {
    let first = body(json!({"n": 1, "set": ["a"], "l": [{"k": "x", "v": "1"}]}));
    let object = apply(None, &first, &by("m1"), false, &schema()).unwrap();
    let second = body(json!({"n": 1, "set": ["b"], "l": [{"k": "y", "v": "2"}]}));
    let object = apply(Some(&object), &second, &by("m2"), false, &schema()).unwrap();
    assert_eq!(
        object["spec"],
        json!({"n": 1, "set": ["a", "b"], "l": [{"k": "x", "v": "1"}, {"k": "y", "v": "2"}]})
    );
    let object = apply(Some(&object), &body(json!({"n": 1})), &by("m1"), false, &schema()).unwrap();
    assert_eq!(
        object["spec"],
        json!({"n": 1, "set": ["b"], "l": [{"k": "y", "v": "2"}]})
    );
    assert_eq!(
        owners(&object),
        [
            ("m1".to_owned(), r#"{"f:spec":{"f:n":{}}}"#.to_owned()),
            (
                "m2".to_owned(),
                r#"{"f:spec":{"f:l":{"k:{\"k\":\"y\"}":{".":{},"f:k":{},"f:v":{}}},"f:n":{},"f:set":{"v:\"b\"":{}}}}"#
                    .to_owned()
            )
        ]
    );
    let error = apply(Some(&object), &body(json!({"n": 5})), &by("m3"), false, &schema()).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .spec.n\nconflicts with \"m2\":\n- .spec.n"
    );
    let object = apply(Some(&object), &body(json!({"n": 5})), &by("m3"), true, &schema()).unwrap();
    assert_eq!(object["spec"]["n"], 5);
    let owning: Vec<String> = owners(&object)
        .into_iter()
        .filter(|(_, fields)| fields.contains("f:n"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(owning, ["m3"]);
}

#[test]
fn a_single_conflict_has_a_one_line_message() {
    let object = apply(None, &body(json!({"n": 1})), &by("m1"), false, &schema()).unwrap();
    let error = apply(Some(&object), &body(json!({"n": 2})), &by("m2"), false, &schema()).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"m1\": .spec.n"
    );
}

#[test]
fn an_unknown_field_is_an_internal_error_as_on_the_real_server() {
    let error = apply(None, &body(json!({"zz": 1})), &by("m1"), false, &schema()).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            500,
            "failed to create typed patch object (/s; probe.example.com/v1, Kind=Probe): .spec.zz: field not \
             declared in schema"
        )
    );
}

#[test]
fn an_update_owns_exactly_the_fields_that_it_changes() {
    let object = apply(
        None,
        &body(json!({"n": 1, "d": "a"})),
        &by("m1"),
        false,
        &schema(),
    )
    .unwrap();
    let mut changed = object.clone();
    changed["spec"]["n"] = json!(2);
    let object = update(Some(&object), changed, &by("editor"), &schema());
    assert_eq!(
        owners(&object),
        [
            ("m1".to_owned(), r#"{"f:spec":{"f:d":{}}}"#.to_owned()),
            ("editor".to_owned(), r#"{"f:spec":{"f:n":{}}}"#.to_owned())
        ]
    );
    let again = update(Some(&object), object.clone(), &by("another-manager"), &schema());
    assert_eq!(again, object);
    let mut cleared = object.clone();
    cleared["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(
        owners(&update(Some(&object), cleared, &by("editor"), &schema())),
        []
    );
}

#[test]
fn a_removed_entry_is_not_restored() {
    let object = update(None, body(json!({"n": 1})), &by("creator"), &schema());
    let object = apply(Some(&object), &body(json!({"n": 1})), &by("m1"), false, &schema()).unwrap();
    let mut disowned = object.clone();
    let entries = disowned["metadata"]["managedFields"].as_array_mut().unwrap();
    entries.retain(|entry| entry["manager"] != "creator");
    let object = update(Some(&object), disowned, &by("creator"), &schema());
    assert_eq!(owners(&object).len(), 1);
    let object = apply(
        Some(&object),
        &body(json!({"d": "x"})),
        &by("m1"),
        false,
        &schema(),
    )
    .unwrap();
    assert_eq!(object["spec"], json!({"d": "x"}), "no other manager owned it");
}

fn specs() -> impl Strategy<Value = Value> {
    let items = prop::collection::btree_map("[a-c]", "[x-z]", 0..3);
    let set = prop::collection::btree_set("[a-c]", 0..3);
    (prop::option::of(0..3), prop::option::of("[a-b]"), items, set).prop_map(|(n, d, items, set)| {
        let mut spec = json!({});
        if let Some(n) = n {
            spec["n"] = json!(n);
        }
        if let Some(d) = d {
            spec["d"] = json!(d);
        }
        if !items.is_empty() {
            spec["l"] = items.iter().map(|(k, v)| json!({"k": k, "v": v})).collect();
        }
        if !set.is_empty() {
            spec["set"] = json!(set);
        }
        body(spec)
    })
}

proptest! {
    #[test]
    fn a_second_apply_changes_nothing(first in specs(), second in specs()) {
        let object = apply(None, &first, &by("m1"), false, &schema()).unwrap();
        let once = apply(Some(&object), &second, &by("m2"), true, &schema()).unwrap();
        let twice = apply(Some(&once), &second, &by("m2"), true, &schema()).unwrap();
        prop_assert_eq!(&once, &twice);
    }

    #[test]
    fn a_single_manager_gets_exactly_its_last_configuration(first in specs(), second in specs()) {
        let object = apply(None, &first, &by("m1"), false, &schema()).unwrap();
        let object = apply(Some(&object), &second, &by("m1"), false, &schema()).unwrap();
        prop_assert_eq!(FieldSet::from_object(&object, &schema()), FieldSet::from_object(&second, &schema()));
    }

    #[test]
    fn field_sets_survive_encoding_and_decoding(spec in specs()) {
        let fields = FieldSet::from_object(&spec, &schema());
        let encoded = fields.encode();
        if encoded != json!({}) {
            prop_assert_eq!(FieldSet::decode(&encoded).encode(), encoded);
        }
    }
}
