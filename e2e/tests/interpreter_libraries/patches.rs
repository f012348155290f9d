//! JSON patches that a webhook may answer.

use interpreter::webhook::apply_json_patch;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::{
    documents::{document, value},
    libraries::{Libraries, LibraryAnswer, is_same},
};

/// How many patches are tried.
const PATCHES: usize = 6000;

#[test]
fn patches_lead_to_the_same() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let mut chance = StdRng::seed_from_u64(21);
    let asked: Vec<_> = (0..PATCHES)
        .map(|_| {
            let document = plain(document(&mut chance, 4));
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
    anyhow::ensure!(changed > PATCHES / 4, "only {changed} can be done");
    Ok(())
}

/// A value in which nothing is null or has no name: json-patch panics where it compares two that are null, takes what is null for what is
/// not there, and an empty name for the whole.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, field)| !name.is_empty() && !field.is_null())
            .map(|(name, field)| (name, plain(field)))
            .collect(),
        Value::Array(items) => items
            .into_iter()
            .filter(|item| !item.is_null())
            .map(plain)
            .collect(),
        Value::Null => json!(0),
        value => value,
    }
}

/// An operation that as often as not can be done.
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
                // That there is nothing.
                true => Value::Null,
                false => plain(self::value(chance, 1)),
            });
            json!({"op": name, "path": path, "value": value})
        }
        _ => json!({"op": name, "path": path, "value": plain(value(chance, 2))}),
    }
}

/// Somewhere in a document, or beside it.
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
