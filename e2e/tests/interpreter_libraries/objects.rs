//! Objects that scripts receive and return.

use std::collections::HashSet;

use interpreter::{
    Answer, Question,
    lua::{LuaLimits, LuaProgram},
};
use rand::{SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::{
    documents::document,
    libraries::{Libraries, LibraryAnswer, is_same, script},
};

/// The number of objects per script.
const OBJECTS: usize = 300;

/// Scripts whose results gopher-json accepts, because no table occurs twice in them.
const SCRIPTS: [&str; 6] = [
    "function Retain(desired, observed) return desired end",
    "function Retain(desired, observed) return observed end",
    "function Retain(desired, observed) desired.a = observed.a desired.spec = observed.spec return desired end",
    "function Retain(desired, observed) desired.new = {} desired.list = {{}, {}, {x = {}}} return desired end",
    "function Retain(desired, observed) desired.spec = {a = {}, b = {c = {}}, items = {{a = {}}}} return desired end",
    "function Retain(desired, observed) for name, value in pairs(observed) do desired[name] = value end return desired end",
];

/// The path of a field, without list indexes.
type FieldPath = Vec<String>;

#[test]
fn empty_values_are_restored_from_both_objects() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let mut chance = StdRng::seed_from_u64(18);
    let mut object = || {
        let mut object = document(&mut chance, 4);
        object["kind"] = json!("Thing");
        object
    };
    let asked: Vec<_> = (0..OBJECTS)
        .flat_map(|_| SCRIPTS.map(|script| (script, object(), object())))
        .collect();
    let questions = asked
        .iter()
        .map(|(text, desired, observed)| script(text, "Retain", &[desired, observed]));
    for ((text, desired, observed), theirs) in asked.iter().zip(libraries.ask(questions.collect())?) {
        let ours = LuaProgram::compile("script", text)?
            .interpret(Question::Retain { desired, observed }, &LuaLimits::default());
        let (Ok(Answer::Object(ours)), LibraryAnswer::Value(theirs)) = (&ours, &theirs) else {
            anyhow::bail!("{text} with {desired} and {observed}: ours {ours:?}, theirs {theirs}");
        };
        let theirs = restore_empty(theirs[0]["value"].clone(), &[desired, observed]);
        anyhow::ensure!(
            is_same(ours, &theirs),
            "{text} with {desired} and {observed}: ours {ours}, theirs {theirs}"
        );
    }
    Ok(())
}

#[test]
fn empty_values_are_removed_without_a_reference_object() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let text = "function ReflectStatus(obj) return obj.status end";
    let program = LuaProgram::compile("script", text)?;
    let mut chance = StdRng::seed_from_u64(19);
    let objects: Vec<_> = (0..OBJECTS)
        .map(|_| json!({"status": document(&mut chance, 5)}))
        .collect();
    let questions = objects
        .iter()
        .map(|object| script(text, "ReflectStatus", &[object]));
    for (object, theirs) in objects.iter().zip(libraries.ask(questions.collect())?) {
        let ours = program.interpret(Question::Status { object }, &LuaLimits::default());
        let (Ok(Answer::Status(Some(ours))), LibraryAnswer::Value(theirs)) = (&ours, &theirs) else {
            anyhow::bail!("{object}: ours {ours:?}, theirs {theirs}");
        };
        let theirs = restore_empty(theirs[0]["value"].clone(), &[]);
        anyhow::ensure!(is_same(ours, &theirs), "{object}: ours {ours}, theirs {theirs}");
    }
    Ok(())
}

/// Restores empty objects and lists in a result of gopher-json, which returns a list for both. Like Karmada,
/// it restores the values that were empty at the same path in `references`.
fn restore_empty(result: Value, references: &[&Value]) -> Value {
    let (mut objects, mut lists) = (HashSet::new(), HashSet::new());
    for reference in references {
        note_empty(reference, &mut Vec::new(), &mut objects, &mut lists);
    }
    match result {
        Value::Array(items) if items.is_empty() => json!({}),
        result => restore_empty_at(result, &Vec::new(), &objects, &lists),
    }
}

fn note_empty(
    value: &Value,
    path: &mut FieldPath,
    objects: &mut HashSet<FieldPath>,
    lists: &mut HashSet<FieldPath>,
) {
    match value {
        Value::Object(fields) if fields.is_empty() => {
            objects.insert(path.clone());
        }
        Value::Array(items) if items.is_empty() => {
            lists.insert(path.clone());
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                path.push(name.clone());
                note_empty(field, path, objects, lists);
                path.pop();
            }
        }
        Value::Array(items) => {
            for item in items {
                note_empty(item, path, objects, lists);
            }
        }
        _ => {}
    }
}

fn restore_empty_at(
    value: Value,
    path: &FieldPath,
    objects: &HashSet<FieldPath>,
    lists: &HashSet<FieldPath>,
) -> Value {
    let restore = |value: Value, path: &FieldPath| match value {
        Value::Array(items) if items.is_empty() => match (objects.contains(path), lists.contains(path)) {
            (true, _) => Some(json!({})),
            (false, true) => Some(json!([])),
            (false, false) => None,
        },
        value => Some(restore_empty_at(value, path, objects, lists)),
    };
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter_map(|(name, field)| {
                let path = [path.as_slice(), std::slice::from_ref(&name)].concat();
                restore(field, &path).map(|field| (name, field))
            })
            .collect(),
        Value::Array(items) => items.into_iter().filter_map(|item| restore(item, path)).collect(),
        value => value,
    }
}

/// Removes all empty lists, as in a result without references.
pub(crate) fn without_empty_lists(value: Value) -> Value {
    restore_empty_at(value, &Vec::new(), &HashSet::new(), &HashSet::new())
}
