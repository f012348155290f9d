//! Compares the subset with recorded results of CUE v0.4.3 (`oracle/`).

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use policy_cue::{CueBudget, CueInputs, CueProgram};
use serde_json::{Number, Value};

/// Converts whole floats to integers on both sides: CUE's `2.0` equals `2`.
fn with_plain_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
                Value::Number(Number::from(float as i64))
            }
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(with_plain_numbers).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(label, value)| (label, with_plain_numbers(value)))
            .collect(),
        other => other,
    }
}

/// Compares values; numbers may differ in the last of their 16 digits, since parsing is not exact.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let (Some(left_float), Some(right_float)) = (left.as_f64(), right.as_f64()) else {
                return false;
            };
            left == right || left.is_f64() && (left_float - right_float).abs() <= left_float.abs() * 1e-15
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let has_same = |(label, value): (&String, &Value)| {
                right.get(label).is_some_and(|right| is_same(value, right))
            };
            left.len() == right.len() && left.iter().all(has_same)
        }
        _ => left == right,
    }
}

/// The outcome in the terms of the vectors.
fn outcome(program: &str, inputs: &Value, output: &str) -> (String, Value) {
    let program = match CueProgram::compile(program) {
        Ok(program) => program,
        Err(problems) => return ("error".to_owned(), Value::String(problems.to_string())),
    };
    let mut given = CueInputs::new();
    for (name, value) in inputs.as_object().into_iter().flatten() {
        given = given.with_input(name, value);
    }
    match program.evaluate(&given, output, &CueBudget::default()) {
        Ok(Some(value)) => ("value".to_owned(), with_plain_numbers(value)),
        Ok(None) => ("absent".to_owned(), Value::Null),
        Err(error) => (error.category().to_owned(), Value::String(error.to_string())),
    }
}

/// The folder of the vectors; other vectors can be compared as well: see `oracle/vectors.js`.
fn folder() -> PathBuf {
    if let Some(folder) = env::var_os("POLICY_CUE_VECTORS") {
        return folder.into();
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

#[test]
fn results_equal_those_of_cue() {
    // Shared inputs are stored once.
    let shared: BTreeMap<String, Value> =
        serde_json::from_str(&fs::read_to_string(folder().join("inputs.json")).unwrap()).unwrap();
    let (mut count, mut refused) = (0, 0);
    let mut wrong = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    for file in files {
        for (line, text) in (1..).zip(fs::read_to_string(&file).unwrap().lines()) {
            count += 1;
            let vector: Value = serde_json::from_str(text).unwrap();
            let inputs = match &vector["inputs"] {
                Value::String(name) => &shared[name],
                inputs => inputs,
            };
            let program = vector["program"].as_str().unwrap();
            let output = vector["outputPath"].as_str().unwrap_or("patches");
            let (found, value) = outcome(program, inputs, output);
            let expected = vector["outcome"].as_str().unwrap();
            // Rejecting a program is allowed, since it is not a wrong result.
            refused += usize::from(found == "unsupported");
            let is_right = found == "unsupported"
                || found == expected
                    && (found != "value" || is_same(&value, &with_plain_numbers(vector["output"].clone())));
            if !is_right {
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                let answer = if expected == "value" {
                    &vector["output"]
                } else {
                    &vector["message"]
                };
                wrong.push(format!(
                    "{name}:{line}\n{program}\n  CUE: {expected} {answer}\n  here: {found} {value}\n"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 2000, "there are only {count} vectors");
    assert!(
        refused * 100 < count,
        "{refused} of {count} are rejected during evaluation"
    );
}
