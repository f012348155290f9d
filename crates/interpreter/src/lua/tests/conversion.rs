//! Conversion between JSON and Lua.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{LIMITS, run, run_error};
use crate::{Answer, Question, lua::LuaProgram};

/// Runs `Retain` with two objects.
fn retain(script: &str, desired: Value, observed: Value) -> Value {
    let program = LuaProgram::compile("test", script).unwrap();
    let question = Question::Retain {
        desired: &desired,
        observed: &observed,
    };
    match program.interpret(question, &LIMITS).unwrap() {
        Answer::Object(object) => object,
        other => panic!("{other:?}"),
    }
}

const UNCHANGED: &str = "function Retain(desired, observed) return desired end";

#[test]
fn empty_values_round_trip() {
    let desired = json!({"kind": "x", "spec": {"a": {}, "b": [], "c": [{"d": {}, "e": []}], "n": null, "l": [1, null, 2]}});
    assert_eq!(
        retain(UNCHANGED, desired, json!({})),
        json!({"kind": "x", "spec": {"a": {}, "b": [], "c": [{"d": {}, "e": []}], "l": [1, 2]}})
    );
    let from_observed =
        "function Retain(desired, observed) desired.spec = observed.spec desired.new = {} return desired end";
    assert_eq!(
        retain(
            from_observed,
            json!({"kind": "x"}),
            json!({"spec": {"affinity": {}}})
        ),
        json!({"kind": "x", "spec": {"affinity": {}}})
    );
}

#[test]
fn integers_round_trip() {
    let desired = json!({"kind": "x", "a": 1, "b": 1.5, "c": -3, "d": 1e3, "e": 9_007_199_254_740_992_i64});
    assert_eq!(
        retain(UNCHANGED, desired, json!({})),
        json!({"kind": "x", "a": 1, "b": 1.5, "c": -3, "d": 1000, "e": 9_007_199_254_740_992_i64})
    );
    // Larger integers are rounded to floats, but within 64 bits they remain integers, as API servers require.
    let large =
        json!({"kind": "x", "a": 1_234_567_890_123_456_789_i64, "b": i64::MIN, "c": i64::MAX, "d": 1e300});
    assert_eq!(
        retain(UNCHANGED, large, json!({})),
        json!({"kind": "x", "a": 1_234_567_890_123_456_768_i64, "b": i64::MIN, "c": 9_223_372_036_854_775_808.0, "d": 1e300})
    );
}

#[test]
fn a_table_may_be_shared_but_not_cyclic() {
    assert_eq!(
        run("local t = {a = 1} return {x = t, y = t}"),
        Ok(json!({"x": {"a": 1}, "y": {"a": 1}}))
    );
    assert_eq!(
        run_error("local t = {} t.self = {t} return t"),
        "the result of ReflectStatus: value.self[1]: a table contains itself"
    );
}

#[test]
fn values_that_are_not_json_are_rejected() {
    for (body, expected) in [
        (
            "return {[1] = 'a', b = 'c'}",
            "value: cannot encode mixed or invalid key types",
        ),
        ("return {[2] = 'a'}", "value: cannot encode sparse array"),
        ("return {[1.5] = 'a'}", "value: cannot encode sparse array"),
        (
            "return {[true] = 'a'}",
            "value: cannot encode mixed or invalid key types",
        ),
        (
            "return {a = {print}}",
            "value.a[1]: cannot encode function to JSON",
        ),
        ("return {a = 0/0}", "value.a: is not a finite number"),
        ("return {a = 1/0}", "value.a: is not a finite number"),
    ] {
        assert_eq!(
            run_error(body),
            format!("the result of ReflectStatus: {expected}")
        );
    }
    assert_eq!(
        run("local t = {} t[3] = 'c' t[2] = 'b' t[1] = 'a' return t"),
        Ok(json!(["a", "b", "c"]))
    );
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-1_000_000_i64..1_000_000).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,4}", inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Reports whether no path has an empty object in one place and an empty list in another, which cannot be
/// distinguished.
fn is_unambiguous(value: &Value) -> bool {
    let text = value.to_string();
    !(text.contains("{}") && text.contains("[]"))
}

/// Reports whether a list has an empty item; it becomes what its siblings are.
fn has_empty_item(value: &Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter()
            .any(|item| item == &json!([]) || item == &json!({}) || has_empty_item(item)),
        Value::Object(fields) => fields.values().any(has_empty_item),
        _ => false,
    }
}

proptest! {
    #[test]
    fn unchanged_values_round_trip(spec in json_value()) {
        prop_assume!(is_unambiguous(&spec) && !has_empty_item(&spec));
        let desired = json!({"kind": "x", "spec": spec});
        prop_assert_eq!(retain(UNCHANGED, desired.clone(), json!({})), desired);
    }
}
