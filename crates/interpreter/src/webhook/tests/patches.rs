//! Patches in responses, including hostile ones.

use super::*;

fn apply(patch: &Value) -> Result<Value, String> {
    apply_json_patch(&deployment(), patch.to_string().as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn patches_follow_rfc_6902() {
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "n", "name": "d"},
        "spec": {"replicas": 3, "list": [1, 2, 3], "a/b~c": true, "moved": 1},
    });
    let patched = apply(&json!([
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/replicas", "value": 3},
        {"op": "add", "path": "/spec/list", "value": [1, 3]},
        {"op": "add", "path": "/spec/list/1", "value": 2},
        {"op": "add", "path": "/spec/a~1b~0c", "value": true},
        {"op": "copy", "from": "/spec/list/0", "path": "/spec/copied"},
        {"op": "move", "from": "/spec/copied", "path": "/spec/moved"},
        {"op": "add", "path": "/spec/gone", "value": 1},
        {"op": "remove", "path": "/spec/gone"},
        {"op": "add", "path": "/spec/list/-", "value": 4},
        {"op": "remove", "path": "/spec/list/3"},
    ]));
    assert_eq!(patched, Ok(expected));
    for nothing in [json!([]), json!(null)] {
        assert_eq!(apply(&nothing), Ok(deployment()));
    }
}

#[test]
fn an_absent_field_tests_as_null() {
    let tested = |path: &str| apply(&json!([{"op": "test", "path": path, "value": null}]));
    assert_eq!(tested("/spec/none"), Ok(deployment()));
    for path in ["/spec/replicas", "/none/a", "/kind/a"] {
        assert!(tested(path).is_err(), "{path}");
    }
}

#[test]
fn a_failed_operation_is_reported_with_its_number() {
    for (patch, expected) in [
        (
            json!([{"op": "remove", "path": "/spec/none"}]),
            "operation 1 failed: ",
        ),
        (
            json!([{"op": "add", "path": "/none/a", "value": 1}]),
            "operation 1 failed: ",
        ),
        (
            json!([{"op": "add", "path": "/spec/list", "value": [1]}, {"op": "remove", "path": "/spec/list/-1"}]),
            "operation 2 failed: ",
        ),
        (
            json!([{"op": "test", "path": "/spec/replicas", "value": 1}]),
            "operation 1 failed: ",
        ),
        (json!([{"op": "do", "path": "/spec"}]), "is not a JSON patch: "),
        (json!({"spec": {}}), "is not a JSON patch: "),
        (
            json!([{"op": "replace", "path": "", "value": []}]),
            "the result is not an object",
        ),
        (
            json!([{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]),
            "the result has another metadata.namespace",
        ),
        (
            json!([{"op": "remove", "path": "/kind"}]),
            "the result has another kind",
        ),
    ] {
        let error = apply(&patch).unwrap_err();
        assert!(error.starts_with(expected), "{patch}: {error}");
    }
}

#[test]
fn an_exploding_patch_is_rejected() {
    let copies = |from: &str, to: fn(usize) -> String, count: usize| {
        let copies = (0..count).map(|number| json!({"op": "copy", "from": from, "path": to(number)}));
        Value::Array(copies.collect())
    };
    // Each operation doubles the size.
    let doubled = copies("/spec", |number| format!("/spec/s{number}"), 64);
    assert_eq!(
        apply(&doubled).unwrap_err(),
        "operation 18 exceeds the limit on work and growth of a patch"
    );
    // Each operation adds one level at the deepest place.
    let deeper = copies(
        "/metadata",
        |number| format!("/metadata{}", "/m".repeat(number + 1)),
        1000,
    );
    assert!(
        apply(&deeper)
            .unwrap_err()
            .ends_with("nests values more than 128 levels deep")
    );
    // A long list, in which each operation moves all items.
    let mut shifted = vec![json!({"op": "add", "path": "/spec/list", "value": vec![0; 100_000]})];
    shifted.extend((0..100_000).map(|_| json!({"op": "add", "path": "/spec/list/0", "value": 0})));
    assert!(
        apply(&shifted.into())
            .unwrap_err()
            .ends_with("exceeds the limit on work and growth of a patch")
    );
    // A long text that is copied often.
    let mut texts = vec![json!({"op": "add", "path": "/spec/text", "value": "a".repeat(1 << 20)})];
    let copied = (0..10_000)
        .map(|number| json!({"op": "copy", "from": "/spec/text", "path": format!("/spec/t{number}")}));
    texts.extend(copied);
    assert!(
        apply(&texts.into())
            .unwrap_err()
            .ends_with("exceeds the limit on work and growth of a patch")
    );
}

#[test]
fn a_patch_may_have_many_operations() {
    let many =
        (0..2000).map(|number| json!({"op": "add", "path": format!("/spec/f{number}"), "value": number}));
    let patched = apply(&Value::Array(many.collect())).unwrap();
    assert_eq!(patched["spec"].as_object().unwrap().len(), 2001);
}
