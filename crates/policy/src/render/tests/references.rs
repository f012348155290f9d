//! References.

use serde_json::{Value, json};

use super::{overridden_with, refused_with, validation_program};

fn place(from: &str) -> Value {
    let path = if from == "http" { "body.spec.x" } else { "/spec/x" };
    json!({
        "from": from, "path": path, "k8s": {"apiVersion": "v1", "kind": "ConfigMap"},
        "http": {"url": "http://a.example", "method": "GET"},
    })
}

/// All inputs of a program, each with its name as value.
fn data() -> Value {
    let of = |x: &str| json!({"kind": "Odd", "metadata": {"name": "a"}, "spec": {"x": x}});
    json!({
        "object": of("current"), "oldObject": of("old"),
        "extraParams": {
            "otherObject": of("other"), "http": {"body": of("http")},
            "otherObject_d": of("other of data"), "http_d": {"body": of("http of data")},
        },
    })
}

#[test]
fn data_can_come_from_every_source() {
    for (from, x) in [
        ("current", "current"),
        ("old", "old"),
        ("k8s", "other of data"),
        ("owner", "other of data"),
        ("http", "http of data"),
    ] {
        let condition =
            json!({"cond": "Equal", "message": "no", "dataRef": place(from), "value": {"string": x}});
        assert_eq!(refused_with(&condition, &data()).as_deref(), Some("no"), "{from}");
    }
}

#[test]
fn values_can_come_from_every_source() {
    for (from, x) in [
        ("current", "current"),
        ("old", "old"),
        ("k8s", "other"),
        ("owner", "other"),
        ("http", "http"),
    ] {
        let template = json!({"type": "labels", "operation": "add", "path": "x", "valueRef": place(from)});
        let object = overridden_with(&template, &data());
        assert_eq!(object["metadata"]["labels"], json!({"x": x}), "{from}");
        let mut data = data();
        data["object"]["spec"]["seen"] = x.into();
        let seen = json!({"from": "current", "path": "spec.seen"});
        let condition = json!({"cond": "Equal", "message": "no", "dataRef": seen, "valueRef": place(from)});
        assert_eq!(refused_with(&condition, &data).as_deref(), Some("no"), "{from}");
    }
}

#[test]
fn the_existence_of_an_owner_can_be_checked() {
    let condition = json!({"cond": "NotExist", "message": "no owner", "dataRef": {"from": "owner"}});
    assert_eq!(refused_with(&condition, &data()), None);
    for extra in [json!({}), json!({"otherObject_d": null})] {
        let without = json!({"object": {"kind": "Odd"}, "extraParams": extra});
        assert_eq!(refused_with(&condition, &without).as_deref(), Some("no owner"));
    }
}

#[test]
fn only_used_inputs_are_declared() {
    let exists =
        |from: &str| validation_program(&json!({"cond": "Exist", "message": "no", "dataRef": place(from)}));
    assert!(exists("owner").contains("\notherObject_d: data.extraParams.otherObject_d\n"));
    assert!(!exists("owner").contains("http"));
    assert!(!exists("owner").contains("\nobject:"));
}
