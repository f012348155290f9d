use serde_json::{Value, json};

use crate::Path;

/// Each case: a path, the source, the target, and the expected target.
fn check(key: Option<&str>, cases: &[(&str, Value, Value, Value)]) {
    for (path, from, to, expected) in cases {
        let mut copied = to.clone();
        let compiled = Path::parse(path).unwrap();
        let wrote = match key {
            Some(key) => compiled.copy_by_key(key, from, &mut copied),
            None => compiled.copy(from, &mut copied),
        };
        assert_eq!(copied, *expected, "{path}: {from} to {to}");
        assert!(wrote || copied == *to, "{path}: {from} to {to}");
    }
}

#[test]
fn present_values_are_copied_and_absent_ones_change_nothing() {
    check(
        None,
        &[
            (
                ".a",
                json!({"a": 1}),
                json!({"a": 2, "b": 3}),
                json!({"a": 1, "b": 3}),
            ),
            (".a", json!({"a": 1}), json!({}), json!({"a": 1})),
            (".a", json!({}), json!({"a": 2}), json!({"a": 2})),
            (".a", json!({"a": null}), json!({"a": 2}), json!({"a": 2})),
            (".a", json!({"a": false}), json!({"a": true}), json!({"a": false})),
            (
                ".a",
                json!({"a": {"b": 1}}),
                json!({"a": {"c": 2}}),
                json!({"a": {"b": 1}}),
            ),
            ("$", json!({"a": 1}), json!({"b": 2}), json!({"a": 1})),
        ],
    );
}

#[test]
fn missing_parents_are_created_only_for_present_values() {
    check(
        None,
        &[
            (
                ".a.b.c",
                json!({"a": {"b": {"c": 1}}}),
                json!({}),
                json!({"a": {"b": {"c": 1}}}),
            ),
            (".a.b.c", json!({"a": {"b": {}}}), json!({}), json!({})),
            (
                ".a.b",
                json!({"a": {"b": 1}}),
                json!({"a": null}),
                json!({"a": {"b": 1}}),
            ),
            // Another value in the target is kept.
            (
                ".a.b",
                json!({"a": {"b": 1}}),
                json!({"a": "text"}),
                json!({"a": "text"}),
            ),
            (
                ".a[0].b",
                json!({"a": [{"b": 1}]}),
                json!({"a": {"b": 2}}),
                json!({"a": {"b": 2}}),
            ),
            (
                ".a.*",
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"d": 3}}),
                json!({"a": {"d": 3, "b": 1, "c": 2}}),
            ),
            (
                ".a['b','c']",
                json!({"a": {"c": 2, "d": 1}}),
                json!({}),
                json!({"a": {"c": 2}}),
            ),
            (
                ".a[?(@.x)].y",
                json!({"a": {"m": {"x": 1, "y": 2}, "n": {"y": 3}}}),
                json!({}),
                json!({"a": {"m": {"y": 2}}}),
            ),
        ],
    );
}

#[test]
fn items_are_matched_by_index() {
    check(
        None,
        &[
            (
                "[*].a",
                json!([{"a": 1}, {"a": 2}]),
                json!([{"b": 1}, {"b": 2}]),
                json!([{"b": 1, "a": 1}, {"b": 2, "a": 2}]),
            ),
            // Part of an item does not create the item.
            (
                "[*].a",
                json!([{"a": 1}, {"a": 2}]),
                json!([{"b": 1}]),
                json!([{"b": 1, "a": 1}]),
            ),
            (".l[*].a", json!({"l": [{"a": 1}]}), json!({}), json!({})),
            ("[*]", json!([1, 2, 3]), json!([4]), json!([1, 2, 3])),
            (".l[*]", json!({"l": [1, 2]}), json!({}), json!({"l": [1, 2]})),
            ("[*]", json!([1]), json!([4, 5]), json!([1, 5])),
            ("[1]", json!([1, 2]), json!([4, 5]), json!([4, 2])),
            ("[1]", json!([1, 2]), json!([4]), json!([4, 2])),
            ("[1]", json!([1, 2]), json!([]), json!([])),
            (
                ".l[0].a",
                json!({"l": [{"a": 1}]}),
                json!({}),
                json!({"l": [{"a": 1}]}),
            ),
            ("[-1]", json!([1, 2]), json!([4, 5, 6]), json!([4, 5, 2])),
            ("[-2]", json!([1, 2]), json!([4]), json!([4])),
            ("[1:]", json!([1, 2, 3]), json!([4, 5]), json!([4, 2, 3])),
            ("[2:]", json!([1, 2, 3]), json!([]), json!([])),
            (
                "[?(@.a>1)].b",
                json!([{"a": 1, "b": 1}, {"a": 2, "b": 2}]),
                json!([{}, {}]),
                json!([{}, {"b": 2}]),
            ),
            (
                "..a",
                json!({"a": 1, "l": [{"a": 2}, {"a": 3}]}),
                json!({"l": [{}]}),
                json!({"l": [{"a": 2}], "a": 1}),
            ),
        ],
    );
}

#[test]
fn items_are_matched_by_filter() {
    check(
        None,
        &[
            (
                "[?(@.type==\"Ready\")].status",
                json!([{"type": "Ready", "status": "True"}]),
                json!([{"type": "Odd"}, {"type": "Ready"}]),
                json!([{"type": "Odd"}, {"type": "Ready", "status": "True"}]),
            ),
            (
                "[?(@.n==1)]",
                json!([{"n": 1, "v": 2}]),
                json!([{"n": 3}]),
                json!([{"n": 3}, {"n": 1, "v": 2}]),
            ),
            (
                "[?(@.n==1)].v",
                json!([{"n": 1, "v": 2}]),
                json!([]),
                json!([{"n": 1, "v": 2}]),
            ),
            (
                "[?(1==@.n)].v",
                json!([{"n": 1, "v": 2}]),
                json!([]),
                json!([{"n": 1, "v": 2}]),
            ),
            (
                "[?(@.n.m==1)].v",
                json!([{"n": {"m": 1}, "v": 2}]),
                json!([]),
                json!([{"n": {"m": 1}, "v": 2}]),
            ),
            ("[?(@.n==1)].v", json!([{"n": 1}]), json!([]), json!([])),
            (
                "[?(@.n==1)].v",
                json!([{"n": 1, "v": 2}, {"n": 1, "v": 3}]),
                json!([{"n": 1}]),
                json!([{"n": 1, "v": 2}, {"n": 1, "v": 3}]),
            ),
            (
                ".l[?(@.n==1)]",
                json!({"l": [{"n": 1}]}),
                json!({}),
                json!({"l": [{"n": 1}]}),
            ),
        ],
    );
}

#[test]
fn items_are_matched_by_key() {
    let names = |path, from, to, expected| (path, from, to, expected);
    check(
        Some("name"),
        &[
            names(
                "[*].image",
                json!([{"name": "a", "image": 1}, {"name": "b", "image": 2}]),
                json!([{"name": "b"}, {"name": "a"}, {"name": "c"}]),
                json!([{"name": "b", "image": 2}, {"name": "a", "image": 1}, {"name": "c"}]),
            ),
            // An injected sidecar is copied whole.
            names(
                "[*].image",
                json!([{"name": "a", "image": 1}]),
                json!([]),
                json!([]),
            ),
            names(
                "[*]",
                json!([{"name": "a", "image": 1}]),
                json!([{"name": "b"}]),
                json!([{"name": "b"}, {"name": "a", "image": 1}]),
            ),
            names(
                "[0].image",
                json!([{"name": "a", "image": 1}]),
                json!([{"name": "b"}, {"name": "a"}]),
                json!([{"name": "b"}, {"name": "a", "image": 1}]),
            ),
            names(
                "[0].image",
                json!([{"name": "a", "image": 1}]),
                json!([{"name": "b"}]),
                json!([{"name": "b"}]),
            ),
            names(
                "[?(@.x==1)].y",
                json!([{"name": "a", "x": 1, "y": 2}]),
                json!([{"name": "b"}]),
                json!([{"name": "b"}, {"x": 1, "name": "a", "y": 2}]),
            ),
            names(
                "[?(@.x==1)].y",
                json!([{"name": "a", "x": 1, "y": 2}]),
                json!([{"name": "a"}]),
                json!([{"name": "a", "y": 2}]),
            ),
            names(
                "[?(@.x)].y",
                json!([{"name": "a"}, {"name": "b", "x": 1, "y": 2}]),
                json!([{"name": "b"}]),
                json!([{"name": "b", "y": 2}]),
            ),
            // Without a unique key in every item, items are matched by index.
            names(
                "[*].x",
                json!([{"name": "a", "x": 1}]),
                json!([{"name": "b"}, {"name": "b"}]),
                json!([{"name": "b", "x": 1}, {"name": "b"}]),
            ),
            names(
                "[*].x",
                json!([{"name": "a", "x": 1}]),
                json!([{}]),
                json!([{"x": 1}]),
            ),
            names(
                "[*].x",
                json!([{"x": 1}]),
                json!([{"name": "a"}]),
                json!([{"name": "a", "x": 1}]),
            ),
        ],
    );
}
