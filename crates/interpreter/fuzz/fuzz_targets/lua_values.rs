//! A script that returns any object unchanged only changes what Karmada's conversion changes: nulls are
//! dropped, and numbers become floats. Empty objects and lists are restored, unless they are ambiguous.

#![no_main]

use std::{collections::HashMap, sync::LazyLock};

use interpreter::{
    Answer, Question,
    lua::{LuaLimits, LuaProgram},
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

static UNCHANGED: LazyLock<LuaProgram> = LazyLock::new(|| {
    let script = "function Retain(desired, observed) return desired end
        function ReflectStatus(observed) return observed end";
    LuaProgram::compile("unchanged", script).expect("the script compiles")
});

fuzz_target!(|text: &str| {
    let Ok(spec) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let limits = LuaLimits::default();
    let desired = json!({"kind": "x", "spec": spec});
    let question = Question::Retain {
        desired: &desired,
        observed: &Value::Null,
    };
    let Ok(Answer::Object(kept)) = UNCHANGED.interpret(question, &limits) else {
        panic!("not kept: {text}");
    };
    let expected = convert(&desired);
    assert_eq!(prune(&kept), prune(&expected), "{text}");
    if expected == desired_without_floats(&desired) && is_unambiguous(&desired) {
        assert_eq!(kept, expected, "{text}");
    }
    // The conversion is idempotent.
    let question = Question::Retain {
        desired: &kept,
        observed: &Value::Null,
    };
    let again = UNCHANGED.interpret(question, &limits);
    if is_unambiguous(&kept) {
        assert_eq!(again, Ok(Answer::Object(kept)), "{text}");
    }
    // Without a reference, empty values are dropped.
    let question = Question::Status { object: &desired };
    let Ok(Answer::Status(Some(status))) = UNCHANGED.interpret(question, &limits) else {
        panic!("not reflected: {text}");
    };
    assert_eq!(status, without_empty_leaves(&expected), "{text}");
});

/// Drops nulls, and converts numbers to Go's float format and back.
fn convert(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().expect("JSON numbers are finite");
            let is_whole = number == number.trunc() && (-(2f64.powi(63))..2f64.powi(63)).contains(&number);
            if is_whole {
                json!(number as i64)
            } else {
                json!(number)
            }
        }
        Value::Array(items) => {
            let items = items.iter().filter(|item| !item.is_null());
            Value::Array(items.map(converted).collect())
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, field)| !field.is_null());
            Value::Object(
                fields
                    .map(|(name, field)| (name.clone(), convert(field)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// Converts only numbers, as [`convert`] does.
fn desired_without_floats(value: &Value) -> Value {
    match value {
        Value::Number(_) => convert(value),
        Value::Array(items) => items.iter().map(desired_without_floats).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            Value::Object(
                fields
                    .map(|(name, field)| (name.clone(), desired_without_floats(field)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// Removes everything that is empty or contains only empty values.
fn prune(value: &Value) -> Value {
    let is_something =
        |value: &Value| !matches!(value, Value::Array(items) if items.is_empty()) && value != &json!({});
    match value {
        Value::Array(items) => items.iter().map(pruned).filter(is_something).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| (name.clone(), prune(field)));
            Value::Object(
                fields
                    .filter(|(_, field)| is_something(field))
                    .collect::<Map<_, _>>(),
            )
        }
        other => other.clone(),
    }
}

/// Keeps containers that become empty.
fn without_empty_leaves(value: &Value) -> Value {
    let is_something = |value: &Value| *value != json!([]) && *value != json!({});
    match value {
        Value::Array(items) => {
            let items = items.iter().filter(|item| is_something(item));
            items.map(without_empty_leaves).collect()
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, field)| is_something(field));
            Value::Object(
                fields
                    .map(|(name, field)| (name.clone(), without_empty_leaves(field)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// Reports whether no path, ignoring indexes, has an empty object in one place and an empty list in another.
fn is_unambiguous(value: &Value) -> bool {
    fn empty_values_agree(value: &Value, path: &str, seen: &mut HashMap<String, bool>) -> bool {
        match value {
            Value::Array(items) if items.is_empty() => *seen.entry(path.to_owned()).or_insert(true),
            Value::Object(fields) if fields.is_empty() => !*seen.entry(path.to_owned()).or_insert(false),
            Value::Array(items) => items.iter().all(|item| empty_values_agree(item, path, seen)),
            Value::Object(fields) => fields.iter().all(|(name, field)| {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                empty_values_agree(field, &path, seen)
            }),
            _ => true,
        }
    }
    empty_values_agree(value, "", &mut HashMap::new())
}
