//! Calls `e2e/interpreter-libraries`.

use std::{
    fmt,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

use anyhow::Context;
use serde_json::{Value, json};

use crate::go_program;

/// The Go libraries that Karmada's interpreter is built from.
pub(crate) struct Libraries {
    program: PathBuf,
}

/// The result of a library.
#[derive(Clone)]
pub(crate) enum LibraryAnswer {
    /// A value.
    Value(Value),
    /// An error with its message.
    Error(String),
    /// The library panicked, so its result is unknown.
    Panic(String),
}

impl fmt::Display for LibraryAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(formatter),
            Self::Error(error) | Self::Panic(error) => formatter.write_str(error),
        }
    }
}

impl Libraries {
    /// Builds the program; returns [`None`] without Go.
    pub(crate) fn build() -> anyhow::Result<Option<Self>> {
        let program = go_program::build("interpreter-libraries", "Karmada's libraries")?;
        Ok(program.map(|program| Self { program }))
    }

    /// Returns an answer for each question.
    pub(crate) fn ask(&self, questions: Vec<Value>) -> anyhow::Result<Vec<LibraryAnswer>> {
        let count = questions.len();
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("no input")?;
        let stdout = child.stdout.take().context("no output")?;
        let asking = thread::spawn(move || {
            questions
                .iter()
                .try_for_each(|question| writeln!(stdin, "{question}"))
        });
        let answers = BufReader::new(stdout)
            .lines()
            .map(|line| answer(&line?))
            .collect::<anyhow::Result<Vec<_>>>()?;
        asking.join().ok().context("asking failed")??;
        anyhow::ensure!(child.wait()?.success(), "e2e/interpreter-libraries failed");
        anyhow::ensure!(answers.len() == count, "{} of {count} answers", answers.len());
        Ok(answers)
    }
}

fn answer(line: &str) -> anyhow::Result<LibraryAnswer> {
    let mut line: Value = serde_json::from_str(line)?;
    let error = line.get("error").and_then(Value::as_str).map(str::to_owned);
    Ok(match error {
        Some(error) if line["panics"] == true => LibraryAnswer::Panic(error),
        Some(error) => LibraryAnswer::Error(error),
        None => LibraryAnswer::Value(line["answer"].take()),
    })
}

/// Returns the question for the first result of a script's function.
pub(crate) fn script(text: &str, function: &str, arguments: &[&Value]) -> Value {
    json!({"script": {"text": text, "function": function, "arguments": arguments, "results": 1}})
}

/// Reports whether two values are equal, with numbers compared as Lua's floats.
pub(crate) fn is_same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            let (Some(ours), Some(theirs)) = (ours.as_f64(), theirs.as_f64()) else {
                return false;
            };
            // The tolerance of parsed numbers.
            (ours - theirs).abs() <= 4.0 * f64::EPSILON * ours.abs().max(theirs.abs())
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, theirs)| is_same(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .all(|(name, ours)| theirs.get(name).is_some_and(|theirs| is_same(ours, theirs)))
        }
        (ours, theirs) => ours == theirs,
    }
}
