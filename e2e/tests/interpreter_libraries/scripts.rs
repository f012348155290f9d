//! Results of scripts.

use std::time::Duration;

use interpreter::{
    Answer, Question,
    lua::{LuaLimits, LuaProgram},
};
use rand::{SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::{
    agreements::SAME,
    differences::DIFFERENT,
    expressions::Expressions,
    libraries::{Libraries, LibraryAnswer, is_same, script},
    objects::without_empty_lists,
};

/// The number of random expressions.
const EXPRESSIONS: usize = 4000;

/// Generous limits, because other tests run in parallel.
const LIMITS: LuaLimits = LuaLimits {
    time: Duration::from_secs(20),
    instructions: 200_000_000,
    memory: 16 << 20,
};

#[test]
fn scripts_return_the_same_except_for_known_differences() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let bodies = SAME.iter().map(|body| (*body, None));
    let bodies = bodies.chain(DIFFERENT.iter().map(|(body, why)| (*body, Some(*why))));
    let bodies: Vec<_> = bodies.collect();
    let scripts: Vec<_> = bodies.iter().map(|(body, _)| script_with_body(body)).collect();
    let mut wrong = Vec::new();
    for (((body, known), text), theirs) in bodies
        .iter()
        .zip(&scripts)
        .zip(library_answers(&libraries, &scripts)?)
    {
        let (agrees, difference) = compare(text, &theirs);
        match known {
            None if !agrees => wrong.push(format!("{body}: {difference}")),
            Some(why) if agrees => wrong.push(format!(
                "{body} has the same result, although a difference is listed ({why}): {difference}"
            )),
            _ => {}
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn random_expressions_have_the_same_value() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let mut chance = StdRng::seed_from_u64(17);
    let mut expressions = Expressions::new(&mut chance);
    let scripts: Vec<_> = (0..EXPRESSIONS)
        .map(|_| script_with_body(&format!("return {}", expressions.any())))
        .collect();
    let mut wrong = Vec::new();
    let (mut values, mut panics) = (0, 0);
    for (text, theirs) in scripts.iter().zip(library_answers(&libraries, &scripts)?) {
        match &theirs {
            // A gmatch iterator is lost with the frame that created it, and gopher-lua panics.
            LibraryAnswer::Panic(_) => {
                panics += 1;
                continue;
            }
            LibraryAnswer::Error(_) => {}
            LibraryAnswer::Value(_) => values += 1,
        }
        let (agrees, difference) = compare(text, &theirs);
        if !agrees {
            wrong.push(format!("{text}\n  {difference}"));
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    anyhow::ensure!(values > EXPRESSIONS / 2, "only {values} have a value");
    anyhow::ensure!(panics < EXPRESSIONS / 50, "{panics} panic");
    Ok(())
}

/// Returns a script whose `ReflectStatus` returns the result of `body`.
fn script_with_body(body: &str) -> String {
    format!("function ReflectStatus(obj) return {{ value = (function() {body} end)() }} end")
}

fn library_answers(libraries: &Libraries, scripts: &[String]) -> anyhow::Result<Vec<LibraryAnswer>> {
    let object = json!({});
    let questions = scripts
        .iter()
        .map(|text| script(text, "ReflectStatus", &[&object]));
    libraries.ask(questions.collect())
}

/// Runs a script and reports whether both results agree, with a description of both.
fn compare(text: &str, theirs: &LibraryAnswer) -> (bool, String) {
    let ours = run_script(text);
    let agrees = match (&ours, theirs) {
        (Ok(ours), LibraryAnswer::Value(results)) => {
            let theirs = match &results[0]["value"] {
                // An empty list is all that is left of nil.
                Value::Array(none) if none.is_empty() => json!({}),
                value => without_empty_lists(value.clone()),
            };
            is_same(ours, &theirs)
        }
        (Err(_), LibraryAnswer::Error(_)) => true,
        _ => false,
    };
    (agrees, format!("ours {ours:?}, theirs {theirs}"))
}

fn run_script(text: &str) -> Result<Value, String> {
    let program = LuaProgram::compile("script", text).map_err(|error| error.to_string())?;
    let object = json!({});
    match program.interpret(Question::Status { object: &object }, &LIMITS) {
        Ok(Answer::Status(Some(status))) => Ok(status),
        Ok(other) => Err(format!("{other:?} is not a status")),
        Err(error) => Err(error.to_string()),
    }
}
