//! Converts between JSON and CEL.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Value as CelValue,
    objects::{Key, Map},
};
use serde_json::{Number, Value};

/// Converts JSON to CEL; field names stay unchanged.
pub(super) fn to_cel(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(truth) => CelValue::Bool(*truth),
        Value::Number(number) => number.as_i64().map_or_else(
            || CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
            CelValue::Int,
        ),
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => map(fields.iter().map(|(name, value)| (name.clone(), to_cel(value)))),
    }
}

pub(super) fn map(entries: impl Iterator<Item = (String, CelValue)>) -> CelValue {
    let entries: HashMap<_, _> = entries
        .map(|(name, value)| (Key::String(Arc::new(name)), value))
        .collect();
    CelValue::Map(Map {
        map: Arc::new(entries),
    })
}

/// Converts CEL to JSON.
///
/// # Errors
///
/// If JSON has no equivalent.
pub(super) fn to_json(value: &CelValue) -> Result<Value, String> {
    Ok(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(truth) => Value::Bool(*truth),
        CelValue::Int(number) => (*number).into(),
        CelValue::UInt(number) => (*number).into(),
        CelValue::Float(number) => Number::from_f64(*number)
            .map(Value::Number)
            .ok_or_else(|| format!("{number} is not a number in JSON"))?,
        CelValue::String(text) => Value::String(text.to_string()),
        CelValue::List(items) => items.iter().map(to_json).collect::<Result<_, _>>()?,
        CelValue::Map(map) => {
            let mut fields: Vec<(String, Value)> = Vec::new();
            for (name, value) in map.map.iter() {
                let Key::String(name) = name else {
                    return Err(format!("the map key {name} is not a string"));
                };
                fields.push((name.to_string(), to_json(value)?));
            }
            // A CEL map is unordered.
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(fields.into_iter().collect())
        }
        other => {
            return Err(format!(
                "{} cannot be represented in JSON: use string()",
                other.type_of()
            ));
        }
    })
}
