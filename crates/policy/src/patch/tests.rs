use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn patched(mut object: Value, patches: Value) -> Result<Value, String> {
    let patch = JsonPatchOperation::read(&patches).map_err(|error| error.to_string())?;
    apply(&mut object, &patch).map_err(|error| error.to_string())?;
    Ok(object)
}

fn written(before: &Value, after: &Value) -> Value {
    difference(before, after)
        .iter()
        .map(JsonPatchOperation::to_json)
        .collect()
}

#[test]
fn replace_adds_missing_values_with_their_parents() {
    let replace = json!([{"op": "replace", "path": "/metadata/annotations/a.io~1b", "value": "c"}]);
    let expected = json!({"metadata": {"annotations": {"a.io/b": "c"}}});
    assert_eq!(patched(json!({}), replace.clone()), Ok(expected.clone()));
    assert_eq!(
        patched(json!({"metadata": {"annotations": null}}), replace),
        Ok(expected)
    );
}

#[test]
fn add_creates_annotations_as_documented() {
    let add = json!([{"op": "add", "path": "/metadata/annotations/added-by", "value": "op"}]);
    assert_eq!(
        patched(json!({"metadata": {"name": "a"}}), add),
        Ok(json!({"metadata": {"name": "a", "annotations": {"added-by": "op"}}}))
    );
    let add = json!([{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "a"}}]);
    assert_eq!(
        patched(json!({}), add),
        Ok(json!({"spec": {"tolerations": [{"key": "a"}]}}))
    );
}

#[test]
fn removing_a_missing_value_does_nothing() {
    for path in ["/a", "/a/b/c", "/l/7", "/l/x", "/text/a"] {
        let object = json!({"l": [1], "text": "t"});
        let remove = json!([{"op": "remove", "path": path}]);
        assert_eq!(patched(object.clone(), remove), Ok(object), "{path}");
    }
}

#[test]
fn operations_conform_to_the_rfc() {
    let object = json!({"l": [1, 2], "o": {"a": 1}});
    for (patches, expected) in [
        (
            json!([{"op": "add", "path": "/l/1", "value": 9}]),
            json!({"l": [1, 9, 2], "o": {"a": 1}}),
        ),
        (
            json!([{"op": "add", "path": "/l/2", "value": 9}]),
            json!({"l": [1, 2, 9], "o": {"a": 1}}),
        ),
        (
            json!([{"op": "replace", "path": "/l/0", "value": 9}]),
            json!({"l": [9, 2], "o": {"a": 1}}),
        ),
        (
            json!([{"op": "remove", "path": "/l/0"}]),
            json!({"l": [2], "o": {"a": 1}}),
        ),
        (
            json!([{"op": "copy", "from": "/o/a", "path": "/o/b"}]),
            json!({"l": [1, 2], "o": {"a": 1, "b": 1}}),
        ),
        (
            json!([{"op": "move", "from": "/o/a", "path": "/l/-"}]),
            json!({"l": [1, 2, 1], "o": {}}),
        ),
        (
            json!([{"op": "test", "path": "/o/a", "value": 1}, {"op": "remove", "path": "/o"}]),
            json!({"l": [1, 2]}),
        ),
    ] {
        assert_eq!(patched(object.clone(), patches), Ok(expected));
    }
}

#[test]
fn inapplicable_operations_are_reported_with_their_path() {
    let object = json!({"l": [1], "text": "t"});
    for (patches, expected) in [
        (
            json!([{}]),
            "patches[0].op: must be add, replace, remove, test, copy or move",
        ),
        (json!({}), "patches is not a list"),
        (
            json!([{"op": "add", "path": "a", "value": 1}]),
            "patches[0].path: \"a\" is not a JSON pointer: begin with /",
        ),
        (
            json!([{"op": "add", "path": "/~2", "value": 1}]),
            "patches[0].path: \"/~2\" is not a JSON pointer: write ~0 for ~ and ~1 for /",
        ),
        (
            json!([{"op": "add", "path": "/a"}]),
            "patches[0].value: is missing",
        ),
        (
            json!([{"op": "add", "path": "/text/a", "value": 1}]),
            "/text/a: /text is neither an object nor a list",
        ),
        (
            json!([{"op": "add", "path": "/l/01", "value": 1}]),
            "/l/01: \"01\" is not an index of a list of 1 items",
        ),
        (
            json!([{"op": "replace", "path": "/l/2", "value": 1}]),
            "/l/2: \"2\" is not an index of a list of 1 items",
        ),
        (
            json!([{"op": "add", "path": "/new/0", "value": 1}]),
            "/new/0: /new does not exist",
        ),
        (
            json!([{"op": "test", "path": "/text", "value": 1}]),
            "/text: does not have the tested value",
        ),
        (
            json!([{"op": "remove", "path": ""}]),
            "the object as a whole cannot be removed or replaced by another type",
        ),
        (
            json!([{"op": "move", "from": "/l", "path": "/l/0"}]),
            "/l: cannot be moved into itself",
        ),
    ] {
        assert_eq!(patched(object.clone(), patches), Err(expected.to_owned()));
    }
}

#[test]
fn hostile_patches_are_refused() {
    let deep = "/a".repeat(200_000);
    let error = patched(json!({}), json!([{"op": "add", "path": deep, "value": 1}])).unwrap_err();
    assert_eq!(error, "patches[0].path: has more than 100 levels");
    let doubling: Vec<_> = (0..64)
        .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
        .collect();
    let error = patched(json!({"a": [1]}), doubling.into()).unwrap_err();
    assert_eq!(error, "/a/-: copies more than 100000 values");
    let far = "/b".repeat(90);
    let nesting: Vec<_> = (0..100)
        .flat_map(|_| {
            [
                json!({"op": "move", "from": "/a", "path": far}),
                json!({"op": "move", "from": "/b", "path": "/a"}),
            ]
        })
        .collect();
    let error = patched(json!({"a": [1]}), nesting.into()).unwrap_err();
    assert!(error.ends_with(": is nested deeper than 256 levels"), "{error}");
    let many: Vec<_> = (0..10_001)
        .map(|_| json!({"op": "remove", "path": "/a"}))
        .collect();
    assert_eq!(
        patched(json!({}), many.into()).unwrap_err(),
        "patches has 10001 operations; at most 10000 are applied"
    );
}

#[test]
fn a_difference_is_minimal() {
    let before = json!({"a": {"b": 1, "c/d": 2}, "l": [{"k": 1}, {"k": 2}, {"k": 3}]});
    for (after, expected) in [
        (before.clone(), json!([])),
        (
            json!({"a": {"b": 1, "c/d": 3}, "l": [{"k": 1}, {"k": 2}, {"k": 3}]}),
            json!([{"op": "replace", "path": "/a/c~1d", "value": 3}]),
        ),
        (
            json!({"a": {"b": 1, "c/d": 2}, "l": [{"k": 0}, {"k": 1}, {"k": 2}, {"k": 3}]}),
            json!([{"op": "add", "path": "/l/0", "value": {"k": 0}}]),
        ),
        (
            json!({"a": {"b": 1, "c/d": 2}, "l": [{"k": 1}, {"k": 3}]}),
            json!([{"op": "remove", "path": "/l/1"}]),
        ),
        (
            json!({"a": {"b": 1, "c/d": 2}, "l": [{"k": 1}, {"k": 2, "v": 1}, {"k": 3}]}),
            json!([{"op": "add", "path": "/l/1/v", "value": 1}]),
        ),
    ] {
        assert_eq!(written(&before, &after), expected);
    }
}

#[test]
fn long_different_lists_are_compared_quickly() {
    let before: Value = (0..20_000).map(Value::from).collect();
    let after: Value = (0..20_000).map(|number| Value::from(number * 7 + 1)).collect();
    let patch = difference(&before, &after);
    let mut object = json!({"l": before});
    let below: Vec<_> = patch
        .into_iter()
        .map(|operation| match operation {
            JsonPatchOperation::Replace(path, value) => JsonPatchOperation::Replace(
                Pointer::from_tokens(["l".to_owned(), path.tokens()[0].clone()]),
                value,
            ),
            other => other,
        })
        .collect();
    apply(&mut object, &below).unwrap();
    assert_eq!(object["l"], after);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        "[a-c/~]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map("[a-c/~0-1-]{0,2}", inner, 0..5)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn a_difference_transforms_one_object_into_the_other(before in any_json(), after in any_json()) {
        let patch = difference(&json!({"o": before}), &json!({"o": after}));
        let by_the_rfc: json_patch::Patch =
            serde_json::from_value(patch.iter().map(JsonPatchOperation::to_json).collect()).unwrap();
        let mut object = json!({"o": before});
        json_patch::patch(&mut object, &by_the_rfc).unwrap();
        prop_assert_eq!(&object["o"], &after);
        let mut object = json!({"o": before});
        apply(&mut object, &patch).unwrap();
        prop_assert_eq!(&object["o"], &after);
    }

    #[test]
    fn patches_of_the_rfc_have_the_same_result(
        object in any_json(),
        path in "(/[a-c01-]){0,3}",
        value in any_json(),
        operation in prop_oneof![Just("add"), Just("remove"), Just("replace")],
    ) {
        let object = json!({"a": object});
        let patches = json!([{"op": operation, "path": path, "value": value}]);
        let mut expected = object.clone();
        let rfc: json_patch::Patch = serde_json::from_value(patches.clone()).unwrap();
        if !path.is_empty() && json_patch::patch(&mut expected, &rfc).is_ok() {
            prop_assert_eq!(patched(object, patches), Ok(expected));
        }
    }

    #[test]
    fn any_formatted_pointer_parses_back(tokens in proptest::collection::vec(".*", 0..5)) {
        let pointer = Pointer::from_tokens(tokens);
        prop_assert_eq!(Pointer::parse(&pointer.to_string()), Ok(pointer));
    }
}
