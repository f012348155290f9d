//! Conditions.

use serde_json::{Value, json};

use super::refused_with;

/// A condition on `/spec/x`.
fn condition(operator: &str, more: &Value) -> Value {
    let mut condition = json!({
        "cond": operator, "message": "no", "dataRef": {"from": "current", "path": "/spec/x"},
    });
    for (name, value) in more.as_object().unwrap() {
        condition[name] = value.clone();
    }
    condition
}

fn data(x: &Value) -> Value {
    json!({"object": {"kind": "Odd", "spec": {"x": x}}, "oldObject": {}, "extraParams": {}})
}

/// Reports whether a condition with this value holds for the value at `/spec/x`; both modes must agree.
fn holds(operator: &str, value: &Value, x: &Value) -> bool {
    let held = refused_with(&condition(operator, &json!({"value": value})), &data(x)).is_some();
    let allow = json!({"value": value, "affectMode": "allow"});
    assert_eq!(
        refused_with(&condition(operator, &allow), &data(x)).is_none(),
        held
    );
    held
}

/// Like `holds`, with a referenced value.
fn holds_for(operator: &str, y: &Value, x: &Value) -> bool {
    let reference = json!({"from": "owner", "path": "/spec/y"});
    let mut data = data(x);
    data["extraParams"]["otherObject"] = json!({"spec": {"y": y}});
    refused_with(&condition(operator, &json!({"valueRef": reference})), &data).is_some()
}

#[test]
fn exist_and_not_exist_check_presence() {
    let exists = |x: &Value| {
        let exists = refused_with(&condition("Exist", &json!({})), &data(x)).is_some();
        let is_missing = refused_with(&condition("NotExist", &json!({})), &data(x)).is_some();
        assert_ne!(exists, is_missing);
        exists
    };
    for x in [
        json!("a"),
        json!(""),
        json!(false),
        json!(0),
        json!([]),
        json!({}),
    ] {
        assert!(exists(&x), "{x}");
    }
    assert!(!exists(&json!(null)));
    for object in [
        json!({}),
        json!({"spec": null}),
        json!({"spec": "x"}),
        json!({"spec": {}}),
        json!(null),
    ] {
        let data = json!({"object": object});
        assert_eq!(refused_with(&condition("Exist", &json!({})), &data), None);
        assert_eq!(
            refused_with(&condition("NotExist", &json!({})), &data).as_deref(),
            Some("no")
        );
    }
}

#[test]
fn ten_comparisons_and_regex() {
    let three = json!({"integer": 3});
    for (operator, expected) in [
        ("Equal", [false, true, false]),
        ("NotEqual", [true, false, true]),
        ("Gt", [false, false, true]),
        ("Gte", [false, true, true]),
        ("Lt", [true, false, false]),
        ("Lte", [true, true, false]),
    ] {
        let held = [2, 3, 4].map(|x| holds(operator, &three, &json!(x)));
        assert_eq!(held, expected, "{operator}");
        let held = [2, 3, 4].map(|x| holds_for(operator, &json!(3), &json!(x)));
        assert_eq!(held, expected, "{operator} of a reference");
    }
    let list = json!({"stringSlice": ["a", "b"]});
    for (x, is_in) in [("a", true), ("b", true), ("c", false), ("", false)] {
        assert_eq!(holds("In", &list, &json!(x)), is_in);
        assert_eq!(holds("NotIn", &list, &json!(x)), !is_in);
        assert_eq!(holds_for("In", &json!(["a", "b"]), &json!(x)), is_in);
        assert_eq!(holds_for("NotIn", &json!(["a", "b"]), &json!(x)), !is_in);
    }
    let pattern = json!({"string": r"^registry\.example/.+:v[0-9]+$"});
    assert!(holds("Regex", &pattern, &json!("registry.example/a:v1")));
    assert!(!holds("Regex", &pattern, &json!("registry-example/a:v1")));
    assert!(holds_for("Regex", &json!("^a"), &json!("ab")));
}

#[test]
fn a_missing_value_meets_only_not_exist() {
    for operator in ["Equal", "NotEqual", "Gt", "Gte", "Lt", "Lte"] {
        assert!(
            !holds(operator, &json!({"integer": 3}), &json!(null)),
            "{operator}"
        );
        assert!(!holds_for(operator, &json!(null), &json!(3)), "{operator}");
    }
    for operator in ["In", "NotIn"] {
        assert!(
            !holds(operator, &json!({"integerSlice": [3]}), &json!(null)),
            "{operator}"
        );
        for no_list in [json!(null), json!("a"), json!(3)] {
            assert!(!holds_for(operator, &no_list, &json!("a")), "{operator}");
        }
    }
    assert!(!holds("Regex", &json!({"string": ""}), &json!(null)));
    // An empty list exists, but contains nothing.
    assert!(holds_for("NotIn", &json!([]), &json!("a")));
    assert!(!holds_for("In", &json!([]), &json!("a")));
    assert!(holds_for("In", &json!({"allowed": "a"}), &json!("a")));
}

#[test]
fn the_value_is_processed_before_the_comparison() {
    for (operation, with, edge) in [
        ("*", json!("50%"), 3),
        ("*", json!("0.5"), 3),
        ("/", json!(2), 3),
        ("+", json!(-3), 3),
        ("-", json!("3"), 3),
        ("*", json!("150 %".replace(' ', "")), 9),
    ] {
        let process = json!({"operation": operation, "operationWith": with});
        let more = json!({"value": {"integer": 6}, "valueProcess": process});
        let exceeds = |x: i64| refused_with(&condition("Gt", &more), &data(&json!(x))).is_some();
        assert_eq!([exceeds(edge), exceeds(edge + 1)], [false, true], "{process}");
        let reference = json!({"from": "owner", "path": "/spec/y"});
        let more = json!({"valueRef": reference, "valueProcess": process});
        let exceeds = |x: i64, y: &Value| {
            let mut data = data(&json!(x));
            data["extraParams"]["otherObject"] = json!({"spec": {"y": y}});
            refused_with(&condition("Gt", &more), &data).is_some()
        };
        for y in [json!(6), json!("6"), json!("6.0")] {
            assert_eq!(
                [exceeds(edge, &y), exceeds(edge + 1, &y)],
                [false, true],
                "{process}"
            );
        }
        assert!(!exceeds(edge + 1, &json!("text")));
    }
}

#[test]
fn messages_and_values_cannot_inject_code() {
    for text in [
        "\"",
        "\\(object)",
        "\"}\nvalidate: {valid: true}",
        "a\nb\u{0}\u{2028}",
    ] {
        let mut exists = condition("Exist", &json!({}));
        exists["message"] = text.into();
        assert_eq!(refused_with(&exists, &data(&json!(1))).as_deref(), Some(text));
        assert!(holds("Equal", &json!({"string": text}), &json!(text)));
        assert!(holds("In", &json!({"stringSlice": ["x", text]}), &json!(text)));
    }
}

#[test]
fn a_number_in_text_compares_as_number_with_numbers() {
    let numbers = json!({"integerSlice": [1, 3]});
    for (x, is_in) in [
        (json!(3), true),
        (json!("3"), true),
        (json!("3.0"), true),
        (json!(3.0), true),
        (json!("4"), false),
    ] {
        assert_eq!(holds("In", &numbers, &x), is_in, "{x}");
        assert_eq!(holds("NotIn", &numbers, &x), !is_in, "{x}");
    }
    let floats = json!({"floatSlice": ["3.5"]});
    for x in [json!(3.5), json!("3.5"), json!("3.50"), json!("+3.5")] {
        assert!(holds("In", &floats, &x), "{x}");
    }
    assert!(holds("Gte", &json!({"integer": 3}), &json!("10")));
    assert!(holds("Gt", &json!({"string": "9"}), &json!("10")));
    assert!(holds("Gt", &json!({"string": "9"}), &json!(10)));
    assert!(holds_for("Gt", &json!("9"), &json!("10")));
    assert!(holds(
        "Equal",
        &json!({"integer": 9_007_199_254_740_993_i64}),
        &json!("9007199254740993")
    ));
    assert!(!holds(
        "Equal",
        &json!({"integer": 9_007_199_254_740_992_i64}),
        &json!("9007199254740993")
    ));
}

#[test]
fn two_texts_compare_as_text() {
    assert!(holds("Equal", &json!({"string": "3"}), &json!(3)));
    assert!(holds("Equal", &json!({"string": "true"}), &json!(true)));
    assert!(holds("Equal", &json!({"boolean": true}), &json!("true")));
    assert!(holds("NotEqual", &json!({"string": "1.1"}), &json!("1.10")));
    assert!(!holds_for("Equal", &json!("1.1"), &json!("1.10")));
    assert!(holds_for("Equal", &json!(1.1), &json!("1.10")));
    assert!(holds_for("Equal", &json!("3.0"), &json!(3)));
    assert!(holds("Gt", &json!({"string": "abc"}), &json!("abd")));
    assert!(holds_for("Lt", &json!("abd"), &json!("abc")));
}

#[test]
fn incomparable_values_are_unequal_and_unordered() {
    for x in [
        json!("abc"),
        json!("1Gi"),
        json!([3]),
        json!({"a": 3}),
        json!(true),
    ] {
        for (operator, held) in [
            ("Equal", false),
            ("NotEqual", true),
            ("Gt", false),
            ("Gte", false),
            ("Lt", false),
            ("Lte", false),
        ] {
            assert_eq!(
                holds(operator, &json!({"integer": 3}), &x),
                held,
                "{operator} {x}"
            );
            assert_eq!(
                holds_for(operator, &json!(3), &x),
                held,
                "{operator} {x} of a reference"
            );
        }
    }
}

#[test]
fn a_reason_is_given_in_both_modes() {
    let reject = condition("Equal", &json!({"value": {"string": "a"}}));
    assert_eq!(refused_with(&reject, &data(&json!("a"))).as_deref(), Some("no"));
    assert_eq!(refused_with(&reject, &data(&json!("b"))), None);
    let allow = condition("Equal", &json!({"value": {"string": "a"}, "affectMode": "allow"}));
    assert_eq!(refused_with(&allow, &data(&json!("a"))), None);
    for x in [json!("b"), json!(null)] {
        assert_eq!(refused_with(&allow, &data(&x)).as_deref(), Some("no"));
    }
}
