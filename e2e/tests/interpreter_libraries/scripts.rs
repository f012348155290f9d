//! What scripts return.

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

/// How many expressions are tried.
const EXPRESSIONS: usize = 4000;

/// Time enough where everything else runs beside it.
const LIMITS: LuaLimits = LuaLimits {
    time: Duration::from_secs(20),
    instructions: 200_000_000,
    memory: 16 << 20,
};

#[test]
fn scripts_return_the_same_but_for_what_is_known() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let bodies = SAME.iter().map(|body| (*body, None));
    let bodies = bodies.chain(DIFFERENT.iter().map(|(body, why)| (*body, Some(*why))));
    let bodies: Vec<_> = bodies.collect();
    let scripts: Vec<_> = bodies.iter().map(|(body, _)| returning(body)).collect();
    let mut wrong = Vec::new();
    for (((body, known), text), theirs) in bodies.iter().zip(&scripts).zip(asked(&libraries, &scripts)?) {
        let (agrees, said) = compared(text, &theirs);
        match known {
            None if !agrees => wrong.push(format!("{body}: {said}")),
            Some(why) if agrees => wrong.push(format!("{body} is no difference any more ({why}): {said}")),
            _ => {}
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn expressions_by_chance_have_the_same_value() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let mut chance = StdRng::seed_from_u64(17);
    let mut expressions = Expressions::new(&mut chance);
    let scripts: Vec<_> = (0..EXPRESSIONS)
        .map(|_| returning(&format!("return {}", expressions.any())))
        .collect();
    let mut wrong = Vec::new();
    let (mut values, mut panics) = (0, 0);
    for (text, theirs) in scripts.iter().zip(asked(&libraries, &scripts)?) {
        match &theirs {
            // An iterator of gmatch goes with the frame that it was made in.
            LibraryAnswer::Panic(_) => {
                panics += 1;
                continue;
            }
            LibraryAnswer::Error(_) => {}
            LibraryAnswer::Value(_) => values += 1,
        }
        let (agrees, said) = compared(text, &theirs);
        if !agrees {
            wrong.push(format!("{text}\n  {said}"));
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    anyhow::ensure!(values > EXPRESSIONS / 2, "only {values} have a value");
    anyhow::ensure!(panics < EXPRESSIONS / 50, "{panics} panic");
    Ok(())
}

/// A script whose `ReflectStatus` returns what a body does.
fn returning(body: &str) -> String {
    format!("function ReflectStatus(obj) return {{ value = (function() {body} end)() }} end")
}

fn asked(libraries: &Libraries, scripts: &[String]) -> anyhow::Result<Vec<LibraryAnswer>> {
    let object = json!({});
    let questions = scripts
        .iter()
        .map(|text| script(text, "ReflectStatus", &[&object]));
    libraries.ask(questions.collect())
}

/// Whether both say the same, or both fail; what they say.
fn compared(text: &str, theirs: &LibraryAnswer) -> (bool, String) {
    let ours = ours(text);
    let agrees = match (&ours, theirs) {
        (Ok(ours), LibraryAnswer::Value(results)) => {
            let theirs = match &results[0]["value"] {
                // Nothing but what was nil.
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

fn ours(text: &str) -> Result<Value, String> {
    let program = LuaProgram::compile("script", text).map_err(|error| error.to_string())?;
    let object = json!({});
    match program.interpret(Question::Status { object: &object }, &LIMITS) {
        Ok(Answer::Status(Some(status))) => Ok(status),
        Ok(other) => Err(format!("{other:?} is not a status")),
        Err(error) => Err(error.to_string()),
    }
}
