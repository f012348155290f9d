//! Retained values of an observed object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::apply::difference::is_empty;

/// The field that identifies the items of a list.
const ITEM_NAME: &str = "name";

/// The values of an observed object that are retained, and so permanently differ from the desired ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum KeptValues {
    /// No value.
    #[default]
    Nothing,
    /// The whole value.
    Whole,
    /// Some fields of an object.
    Fields(BTreeMap<String, Self>),
    /// Some items of a list, by name.
    Items(BTreeMap<String, Self>),
}

/// The result of comparing an answer.
#[derive(Debug, Default)]
pub(super) struct AnswerComparison {
    /// The retained parts of the observed value.
    pub(super) kept: KeptValues,
    /// The desired value, plus values of the answer that are neither desired nor observed.
    pub(super) expected: Option<Value>,
}

/// Why an answer is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(in crate::apply) enum AnswerError {
    /// The answer is another object.
    #[error("it returned another object: {0}")]
    AnotherObject(String),
    /// The answer lacks desired fields that the live object has.
    #[error("it omitted desired fields that exist in the cluster: {}; it must return the desired or the observed value", .0.join(", "))]
    LeftOut(Vec<String>),
}

impl KeptValues {
    /// Compares an answer with the `desired` and the `observed` object.
    ///
    /// # Errors
    ///
    /// When it lacks fields that both have. An answer may omit items of lists, and fields that the cluster
    /// lacks.
    pub(super) fn find(
        desired: &Value,
        answer: &Value,
        observed: &Value,
    ) -> Result<AnswerComparison, AnswerError> {
        let mut left_out = Vec::new();
        let mut path = Vec::new();
        let found = compare(
            Some(desired),
            Some(answer),
            Some(observed),
            &mut path,
            &mut left_out,
        );
        match left_out.is_empty() {
            true => Ok(found),
            false => Err(AnswerError::LeftOut(left_out)),
        }
    }

    /// Returns `observed` with every retained value replaced by the expected one.
    pub(super) fn masked(&self, expected: &Value, observed: &Value) -> Value {
        let hidden = self.hide(Some(expected), Some(observed));
        hidden.unwrap_or_default()
    }

    fn hide(&self, expected: Option<&Value>, observed: Option<&Value>) -> Option<Value> {
        match (self, observed) {
            (Self::Whole, _) => expected.cloned(),
            (Self::Fields(kept), Some(Value::Object(observed))) => {
                let mut hidden = observed.clone();
                for (name, kept) in kept {
                    let expected = expected.and_then(|expected| expected.get(name));
                    match kept.hide(expected, observed.get(name)) {
                        Some(value) => hidden.insert(name.clone(), value),
                        None => hidden.shift_remove(name),
                    };
                }
                Some(hidden.into())
            }
            (Self::Items(kept), Some(Value::Array(observed))) => {
                let items = observed.iter().filter_map(|item| {
                    let name = name_of(item).unwrap_or_default();
                    match kept.get(name) {
                        Some(kept) => kept.hide(expected.and_then(|list| named(list, name)), Some(item)),
                        None => Some(item.clone()),
                    }
                });
                Some(items.collect())
            }
            _ => observed.cloned(),
        }
    }
}

impl AnswerComparison {
    fn expecting(expected: Option<&Value>) -> Self {
        Self {
            kept: KeptValues::Nothing,
            expected: expected.cloned(),
        }
    }
}

fn compare<'a>(
    desired: Option<&'a Value>,
    answer: Option<&'a Value>,
    observed: Option<&'a Value>,
    path: &mut Vec<&'a str>,
    left_out: &mut Vec<String>,
) -> AnswerComparison {
    if same(desired, answer) {
        return AnswerComparison::expecting(desired);
    }
    let Some(given) = answer else {
        if !is_nothing(observed) {
            left_out.push(path.join("."));
        }
        return AnswerComparison::default();
    };
    if desired.is_none() && answer == observed {
        return AnswerComparison {
            kept: KeptValues::Whole,
            expected: None,
        };
    }
    match (desired, given, observed) {
        (None | Some(Value::Object(_)), Value::Object(given), Some(Value::Object(observed))) => {
            let desired = desired.and_then(Value::as_object);
            compare_fields(desired, given, observed, path, left_out)
        }
        (None | Some(Value::Array(_)), Value::Array(_), Some(list @ Value::Array(_)))
            if is_named(given) && is_named(list) && desired.is_none_or(is_named) =>
        {
            compare_items(desired, given, list, path, left_out)
        }
        _ if answer == observed => AnswerComparison {
            kept: KeptValues::Whole,
            expected: desired.cloned(),
        },
        _ => AnswerComparison::expecting(answer),
    }
}

fn compare_fields<'a>(
    desired: Option<&'a Map<String, Value>>,
    answer: &'a Map<String, Value>,
    observed: &'a Map<String, Value>,
    path: &mut Vec<&'a str>,
    left_out: &mut Vec<String>,
) -> AnswerComparison {
    let mut kept = BTreeMap::new();
    let mut expected = Map::new();
    let own = desired.into_iter().flatten().map(|(name, _)| name);
    let given = answer
        .keys()
        .filter(|name| desired.is_none_or(|desired| !desired.contains_key(*name)));
    for name in own.chain(given) {
        path.push(name);
        let of = |fields: &'a Map<String, Value>| fields.get(name);
        let found = compare(desired.and_then(of), of(answer), of(observed), path, left_out);
        path.pop();
        if let Some(value) = found.expected {
            expected.insert(name.clone(), value);
        }
        if found.kept != KeptValues::Nothing {
            kept.insert(name.clone(), found.kept);
        }
    }
    let is_expected = desired.is_some() || !expected.is_empty();
    AnswerComparison {
        kept: match kept.is_empty() {
            true => KeptValues::Nothing,
            false => KeptValues::Fields(kept),
        },
        expected: is_expected.then(|| expected.into()),
    }
}

fn compare_items<'a>(
    desired: Option<&'a Value>,
    answer: &'a Value,
    observed: &'a Value,
    path: &mut Vec<&'a str>,
    left_out: &mut Vec<String>,
) -> AnswerComparison {
    let mut kept = BTreeMap::new();
    let mut expected = Vec::new();
    for item in answer.as_array().into_iter().flatten() {
        let name = name_of(item).unwrap_or_default();
        let of = |list: &'a Value| named(list, name);
        path.push(name);
        let found = compare(desired.and_then(of), Some(item), of(observed), path, left_out);
        path.pop();
        expected.extend(found.expected);
        if found.kept != KeptValues::Nothing {
            kept.insert(name.to_owned(), found.kept);
        }
    }
    let is_expected = desired.is_some() || !expected.is_empty();
    AnswerComparison {
        kept: match kept.is_empty() {
            true => KeptValues::Nothing,
            false => KeptValues::Items(kept),
        },
        expected: is_expected.then(|| expected.into()),
    }
}

/// Reports whether two values are equal to the API server, which drops empty values.
pub(super) fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    one == other || is_nothing(one) && is_nothing(other)
}

fn is_nothing(value: Option<&Value>) -> bool {
    value.is_none_or(is_empty)
}

/// Reports whether the items of a list have unique names.
fn is_named(list: &Value) -> bool {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let names: BTreeSet<_> = items.iter().filter_map(name_of).collect();
    names.len() == items.len()
}

fn name_of(item: &Value) -> Option<&str> {
    item.get(ITEM_NAME)?.as_str()
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|item| name_of(item) == Some(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::apply::covers;

    #[test]
    fn only_kept_values_are_masked() {
        let desired = json!({"replicas": 1, "image": "a", "list": [{"name": "main", "image": "a"}]});
        let observed = json!({"replicas": 5, "image": "a", "more": 1, "list": [
            {"name": "proxy", "image": "p"}, {"name": "main", "image": "a", "env": ["x"]},
        ]});
        let answer = json!({"replicas": 5, "image": "a", "list": [
            {"name": "main", "image": "a", "env": ["x"]}, {"name": "proxy", "image": "p"},
        ]});
        let found = KeptValues::find(&desired, &answer, &observed).unwrap();
        let expected = found.expected.unwrap();
        assert_eq!(expected, desired);
        let hidden = |observed: &Value| found.kept.masked(&expected, observed);
        assert!(covers(&expected, &hidden(&observed), None));
        for (pointer, value, is_kept) in [
            ("/replicas", json!(6), true),
            ("/list/0/image", json!("q"), true),
            ("/list/1/env", json!(["y"]), true),
            ("/more", json!(2), true),
            ("/image", json!("b"), false),
            ("/list/1/image", json!("b"), false),
        ] {
            let mut changed = observed.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert_eq!(covers(&expected, &hidden(&changed), None), is_kept, "{pointer}");
        }
    }

    #[test]
    fn added_values_are_expected() {
        let found = KeptValues::find(
            &json!({"a": 1, "b": [1]}),
            &json!({"a": 2, "b": [1, 2]}),
            &json!({"a": 3, "b": [3]}),
        );
        let found = found.unwrap();
        assert_eq!(found.kept, KeptValues::Nothing);
        assert_eq!(found.expected, Some(json!({"a": 2, "b": [1, 2]})));
    }

    #[test]
    fn observed_fields_must_not_be_left_out() {
        let desired = json!({"a": 1, "b": {"c": 1, "d": null}, "l": [{"name": "x", "v": 1}, {"name": "y"}]});
        let answer = json!({"b": {}, "l": [{"name": "x"}]});
        let observed = json!({"l": [{"name": "x"}, {"name": "y"}]});
        let found = KeptValues::find(&desired, &answer, &observed).unwrap();
        assert_eq!(found.expected, Some(json!({"b": {}, "l": [{"name": "x"}]})));
        let error = KeptValues::find(&desired, &answer, &desired).unwrap_err();
        let paths = ["a", "b.c", "l.x.v"].map(str::to_owned);
        assert_eq!(error, AnswerError::LeftOut(paths.to_vec()));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), (0_u8..3).prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            let named = prop::collection::btree_map("[x-z]", inner.clone(), 0..3).prop_map(|items| {
                let items = items
                    .into_iter()
                    .map(|(name, value)| json!({"name": name, "v": value}));
                items.collect()
            });
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                named,
                prop::collection::btree_map("[a-c]", inner, 0..3)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn keeping_everything_leaves_no_difference(desired in json(), observed in json()) {
            let found = KeptValues::find(&desired, &observed, &observed).unwrap();
            let expected = found.expected.unwrap_or_default();
            let hidden = found.kept.masked(&expected, &observed);
            prop_assert!(covers(&expected, &hidden, None), "{} {}", expected, hidden);
        }

        #[test]
        fn keeping_nothing_masks_nothing(desired in json(), observed in json()) {
            let found = KeptValues::find(&desired, &desired, &observed).unwrap();
            prop_assert_eq!(found.kept.masked(&desired, &observed), observed);
            prop_assert_eq!(found.expected, Some(desired));
        }
    }
}
