//! Annotations and labels.

use serde_json::{Value, json};

use super::{overridden, overridden_with, patches};

fn template(operation: &str, more: &Value) -> Value {
    let mut template = json!({"type": "annotations", "operation": operation});
    for (name, value) in more.as_object().unwrap() {
        template[name] = value.clone();
    }
    template
}

fn annotated(annotations: &Value) -> Value {
    json!({"kind": "ConfigMap", "metadata": {"name": "a", "annotations": annotations}})
}

/// The annotations after an override.
fn result_of(operation: &str, more: &Value, annotations: &Value) -> Value {
    overridden(&template(operation, more), &annotated(annotations))["metadata"]["annotations"].clone()
}

#[test]
fn missing_annotations_are_created() {
    let entry = json!({"path": "owner", "value": {"string": "x"}});
    for operation in ["add", "replace"] {
        let without = json!({"kind": "ConfigMap", "metadata": {"name": "a"}});
        let object = overridden(&template(operation, &entry), &without);
        assert_eq!(object["metadata"]["annotations"], json!({"owner": "x"}));
        for (before, after) in [
            (json!(null), json!({"owner": "x"})),
            (json!({}), json!({"owner": "x"})),
            (json!({"owner": "old", "b": "c"}), json!({"owner": "x", "b": "c"})),
        ] {
            assert_eq!(result_of(operation, &entry, &before), after);
        }
    }
}

#[test]
fn labels_are_overridden_like_annotations() {
    let template = json!({"type": "labels", "operation": "add", "path": "tier", "value": {"string": "db"}});
    let object = json!({"kind": "ConfigMap", "metadata": {"name": "a"}});
    assert_eq!(
        overridden(&template, &object)["metadata"]["labels"],
        json!({"tier": "db"})
    );
}

#[test]
fn a_map_writes_an_entry_for_each_key() {
    let map = json!({"value": {"stringMap": {"a": "1", "b": "2"}}});
    assert_eq!(
        result_of("add", &map, &json!({"b": "0", "c": "3"})),
        json!({"b": "2", "c": "3", "a": "1"})
    );
    assert_eq!(
        result_of("remove", &map, &json!({"b": "0", "c": "3"})),
        json!({"c": "3"})
    );
}

#[test]
fn removing_a_missing_entry_is_allowed() {
    let entry = json!({"path": "owner"});
    assert_eq!(
        result_of("remove", &entry, &json!({"owner": "x", "b": "c"})),
        json!({"b": "c"})
    );
    for annotations in [json!(null), json!({}), json!({"b": "c"})] {
        assert_eq!(result_of("remove", &entry, &annotations), annotations);
    }
}

#[test]
fn every_value_becomes_text() {
    for (value, text) in [
        (json!({"string": ""}), ""),
        (json!({"integer": -3}), "-3"),
        (json!({"float": "1.50"}), "1.50"),
        (json!({"boolean": false}), "false"),
        (json!({"string": "first", "integer": 1}), "first"),
        (json!({"integer": 9_007_199_254_740_993_i64}), "9007199254740993"),
    ] {
        let entry = json!({"path": "a", "value": value});
        assert_eq!(
            result_of("add", &entry, &json!({})),
            json!({"a": text}),
            "{value}"
        );
    }
}

#[test]
fn a_reference_is_written_if_it_has_a_value() {
    let template = |path: &str| {
        let reference = json!({"from": "owner", "path": path});
        template("add", &json!({"path": "from", "valueRef": reference}))
    };
    let data = json!({
        "object": {"kind": "Pod", "metadata": {"name": "a"}},
        "extraParams": {"otherObject": {"spec": {"text": "t", "number": 3, "boolean": true, "null": null}}},
    });
    for (path, text) in [
        ("/spec/text", "t"),
        ("/spec/number", "3"),
        ("/spec/boolean", "true"),
    ] {
        let object = overridden_with(&template(path), &data);
        assert_eq!(object["metadata"]["annotations"], json!({"from": text}));
    }
    for path in ["/spec/null", "/spec/none", "/spec/text/deeper", "/none/none"] {
        assert_eq!(patches(&template(path), &data), json!([]), "{path}");
    }
}

#[test]
fn keys_with_slashes_and_tildes_are_preserved() {
    let before = json!({"a.io/b": "0", "a.io.b": "1"});
    for path in ["a.io/b", "/a.io/b", "/a.io~1b", "a.io~1b"] {
        let entry = json!({"path": path, "value": {"string": "x"}});
        assert_eq!(
            result_of("replace", &entry, &before),
            json!({"a.io/b": "x", "a.io.b": "1"})
        );
        assert_eq!(
            result_of("remove", &json!({"path": path}), &before),
            json!({"a.io.b": "1"})
        );
    }
    let map = json!({"value": {"stringMap": {"a.io/b": "x"}}});
    assert_eq!(
        result_of("add", &map, &before),
        json!({"a.io/b": "x", "a.io.b": "1"})
    );
}

#[test]
fn values_cannot_inject_code() {
    for text in [
        "\"",
        "\\",
        "\\(data)",
        "\"}]\npatches: [",
        "a\nb\tc\r",
        "\u{0}\u{7f}\u{2028}\u{feff}",
        "#\"",
        "'''",
    ] {
        let entry = json!({"path": "a", "value": {"string": text}});
        assert_eq!(
            result_of("add", &entry, &json!({})),
            json!({"a": text}),
            "{text:?}"
        );
    }
}
