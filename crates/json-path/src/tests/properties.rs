use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use crate::Path;

/// Small, similar values, so that random paths select something.
fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        (0..3_i64).prop_map(Value::from),
        "[abc]".prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 48, 4, |inner| {
        let fields = vec(("[abc]|name", inner.clone()), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

fn paths() -> impl Strategy<Value = Path> {
    let step = prop_oneof![
        4 => "\\.[abc]|\\.name",
        1 => Just(".*".to_owned()),
        2 => Just("[*]".to_owned()),
        1 => "\\[-?[0-2]\\]",
        1 => "\\[[0-2]?:-?[0-2]?(:[12])?\\]",
        1 => "\\['[abc]','[abc]'\\]|\\[[0-2],[0-2]\\]",
        2 => "\\[\\?\\(@\\.[abc](==|!=|<|<=|>|>=)([0-2]|'[abc]')\\)\\]",
        1 => "\\[\\?\\(@\\.[abc]\\)\\]",
        1 => "\\.\\.[abc]",
    ];
    let texts = vec(step, 0..5).prop_map(|steps| steps.concat());
    texts.prop_filter_map("has too many \"..\"", |text| Path::parse(&text).ok())
}

/// Counts a value and everything nested in it.
fn count(value: &Value) -> usize {
    let items = value.as_array().into_iter().flatten();
    let fields = value.as_object().into_iter().flat_map(Map::values);
    1 + items.chain(fields).map(count).sum::<usize>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_text_is_a_path_or_an_error_within_the_text(text in "[.\\[\\]{}$@*?()'\"\\\\ab01:,=!<>~ &ä-]{0,24}") {
        match Path::parse(&text) {
            Ok(path) => prop_assert_eq!(path.to_string(), text),
            Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.column())),
        }
    }

    #[test]
    fn each_value_is_found_once(path in paths(), value in values()) {
        let found = path.find(&value);
        prop_assert!(found.len() <= count(&value));
        let addresses: std::collections::HashSet<_> = found.iter().map(|found| std::ptr::from_ref(*found)).collect();
        prop_assert_eq!(addresses.len(), found.len());
    }

    #[test]
    fn a_path_that_finds_nothing_copies_nothing(path in paths(), from in values(), to in values()) {
        let mut copied = to.clone();
        let wrote = path.copy_by_key("name", &from, &mut copied);
        if path.find(&from).iter().all(|found| found.is_null()) || !wrote {
            prop_assert_eq!(copied, to);
        }
    }

    #[test]
    fn copying_to_the_same_object_changes_nothing(path in paths(), value in values()) {
        let mut copied = value.clone();
        path.copy(&value, &mut copied);
        prop_assert_eq!(&copied, &value);
        path.copy_by_key("name", &value, &mut copied);
        prop_assert_eq!(&copied, &value);
    }

    #[test]
    fn copying_again_changes_nothing(path in paths(), from in values(), to in values()) {
        let mut once = to;
        path.copy(&from, &mut once);
        let mut twice = once.clone();
        path.copy(&from, &mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn a_copied_value_is_found_again(steps in vec("\\.[abc]|\\[0\\]", 0..5), from in values()) {
        let path = Path::parse(&steps.concat()).unwrap();
        let found = path.first(&from).filter(|found| !found.is_null());
        let mut copied = Value::Null;
        prop_assert_eq!(path.copy(&from, &mut copied), found.is_some());
        if let Some(found) = found {
            prop_assert_eq!(path.first(&copied), Some(found));
        }
    }
}
