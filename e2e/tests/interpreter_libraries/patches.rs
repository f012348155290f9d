//! JSON patches that a webhook may return.

use interpreter::webhook::apply_json_patch;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::{
    documents::{document, value},
    libraries::{Libraries, LibraryAnswer, is_same},
};

/// The number of patches.
const PATCHES: usize = 6000;

#[test]
fn patches_have_the_same_result() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let mut chance = StdRng::seed_from_u64(21);
    let asked: Vec<_> = (0..PATCHES)
        .map(|_| {
            let document = without_nulls_and_empty_names(document(&mut chance, 4));
            let count = chance.random_range(1..3);
            let operations: Value = (0..count).map(|_| operation(&mut chance, &document)).collect();
            (document, operations)
        })
        .collect();
    let questions = asked
        .iter()
        .map(|(document, operations)| json!({"patch": {"document": document, "operations": operations}}));
    let mut wrong = Vec::new();
    let mut changed = 0;
    for ((document, operations), theirs) in asked.iter().zip(libraries.ask(questions.collect())?) {
        let ours = apply_json_patch(document, operations.to_string().as_bytes());
        let agrees = match (&ours, &theirs) {
            (Ok(ours), LibraryAnswer::Value(theirs)) => {
                changed += 1;
                is_same(ours, theirs)
            }
            (Err(_), LibraryAnswer::Error(_)) => true,
            _ => false,
        };
        if !agrees {
            wrong.push(format!(
                "{document} by {operations}: ours {ours:?}, theirs {theirs}"
            ));
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    anyhow::ensure!(changed > PATCHES / 4, "only {changed} patches succeeded");
    Ok(())
}

/// Replaces nulls and removes empty names: json-patch panics when it compares two nulls, treats null as
/// absent, and an empty name as the whole document.
fn without_nulls_and_empty_names(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, field)| !name.is_empty() && !field.is_null())
            .map(|(name, field)| (name, without_nulls_and_empty_names(field)))
            .collect(),
        Value::Array(items) => items
            .into_iter()
            .filter(|item| !item.is_null())
            .map(without_nulls_and_empty_names)
            .collect(),
        Value::Null => json!(0),
        value => value,
    }
}

/// Returns a random operation, about half of which succeed.
fn operation(chance: &mut StdRng, document: &Value) -> Value {
    let name = ["add", "add", "remove", "replace", "test", "move", "copy"]
        .choose(chance)
        .copied()
        .unwrap_or("add");
    let path = pointer(chance, document);
    match name {
        "remove" => json!({"op": name, "path": path}),
        "move" | "copy" => json!({"op": name, "from": pointer(chance, document), "path": path}),
        "test" => {
            let found = document.pointer(&path).cloned();
            let value = found.filter(|_| chance.random_ratio(3, 4));
            let value = value.unwrap_or_else(|| match chance.random() {
                // Tests for an absent value.
                true => Value::Null,
                false => without_nulls_and_empty_names(self::value(chance, 1)),
            });
            json!({"op": name, "path": path, "value": value})
        }
        _ => json!({"op": name, "path": path, "value": without_nulls_and_empty_names(value(chance, 2))}),
    }
}

/// Returns a pointer into a document, or to a path that it lacks.
fn pointer(chance: &mut StdRng, document: &Value) -> String {
    let mut pointer = String::new();
    let mut here = Some(document);
    while let Some(value) = here {
        let step = match value {
            Value::Object(fields) if !fields.is_empty() && chance.random_ratio(3, 4) => {
                let names: Vec<_> = fields.keys().collect();
                names
                    .choose(chance)
                    .map_or_else(String::new, |name| (*name).clone())
            }
            Value::Object(_) => "new".to_owned(),
            Value::Array(items) => match chance.random_range(0..6) {
                0 => "-".to_owned(),
                1 => (items.len() + 1).to_string(),
                2 => "x".to_owned(),
                _ => chance.random_range(0..=items.len()).to_string(),
            },
            _ => "deeper".to_owned(),
        };
        pointer.push('/');
        pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        here = match chance.random_ratio(2, 3) {
            true => document.pointer(&pointer),
            false => None,
        };
    }
    pointer
}
