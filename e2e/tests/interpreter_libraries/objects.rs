//! Objects that go into scripts and come out again.

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

/// How many objects are tried with each script.
const OBJECTS: usize = 300;

/// Scripts of which gopher-json takes what each returns, which has no table twice.
const SCRIPTS: [&str; 6] = [
    "function Retain(desired, observed) return desired end",
    "function Retain(desired, observed) return observed end",
    "function Retain(desired, observed) desired.a = observed.a desired.spec = observed.spec return desired end",
    "function Retain(desired, observed) desired.new = {} desired.list = {{}, {}, {x = {}}} return desired end",
    "function Retain(desired, observed) desired.spec = {a = {}, b = {c = {}}, items = {{a = {}}}} return desired end",
    "function Retain(desired, observed) for name, value in pairs(observed) do desired[name] = value end return desired end",
];

/// The path of a field, without the places in lists.
type FieldPath = Vec<String>;

#[test]
fn what_is_empty_is_restored_from_both_objects() -> anyhow::Result<()> {
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
            anyhow::bail!("{text} with {desired} and {observed}: {ours:?} and {theirs}");
        };
        let theirs = restored(theirs[0]["value"].clone(), &[desired, observed]);
        anyhow::ensure!(
            is_same(ours, &theirs),
            "{text} with {desired} and {observed}: {ours} and not {theirs}"
        );
    }
    Ok(())
}

#[test]
fn what_is_empty_is_gone_where_there_is_nothing_to_restore_it_from() -> anyhow::Result<()> {
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
            anyhow::bail!("{object}: {ours:?} and {theirs}");
        };
        let theirs = restored(theirs[0]["value"].clone(), &[]);
        anyhow::ensure!(is_same(ours, &theirs), "{object}: {ours} and not {theirs}");
    }
    Ok(())
}

/// What gopher-json makes of a result, which has a list for whatever is empty, as Karmada goes on with it: by the set of the paths at which
/// something was empty in `references`.
fn restored(result: Value, references: &[&Value]) -> Value {
    let (mut objects, mut lists) = (HashSet::new(), HashSet::new());
    for reference in references {
        note_empty(reference, &mut Vec::new(), &mut objects, &mut lists);
    }
    match result {
        Value::Array(items) if items.is_empty() => json!({}),
        result => restored_at(result, &Vec::new(), &objects, &lists),
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

fn restored_at(
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
        value => Some(restored_at(value, path, objects, lists)),
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

/// What is left of a result that nothing is restored in.
pub(crate) fn without_empty_lists(value: Value) -> Value {
    restored_at(value, &Vec::new(), &HashSet::new(), &HashSet::new())
}
