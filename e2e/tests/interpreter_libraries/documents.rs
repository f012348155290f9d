//! Random JSON.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

const NAMES: [&str; 9] = ["a", "b", "spec", "items", "list", "x-y", "", "ä", "value"];

/// Returns a random object with up to `depth` levels.
pub(crate) fn document(chance: &mut StdRng, depth: u32) -> Value {
    let count = chance.random_range(0..6);
    let fields: Map<String, Value> = (0..count)
        .map(|_| {
            let name = NAMES.choose(chance).copied().unwrap_or_default();
            (name.to_owned(), value(chance, depth - 1))
        })
        .collect();
    Value::Object(fields)
}

/// Returns a random value with up to `depth` levels.
pub(crate) fn value(chance: &mut StdRng, depth: u32) -> Value {
    let kinds = if depth == 0 { 8 } else { 14 };
    match chance.random_range(0..kinds) {
        0 => Value::Null,
        1 => json!(chance.random::<bool>()),
        2 => json!(chance.random_range(-5..100)),
        3 => json!(chance.random::<i64>()),
        4 => json!(chance.random_range(-1000..1000_i32) as f64 / 8.0),
        5 => json!(
            (*["", "text", "äö€", "\"\\\n\u{0}", "1"]
                .choose(chance)
                .unwrap_or(&""))
            .to_owned()
        ),
        6 => json!({}),
        7 => json!([]),
        8..11 => {
            let count = chance.random_range(0..4);
            (0..count).map(|_| value(chance, depth - 1)).collect()
        }
        _ => document(chance, depth),
    }
}
