//! Every template is rejected by field, or rendered to a program that compiles and ends, and whose patches
//! are idempotent. The input is a JSON list with a template and an object.

#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use policy::{
    api::{OverrideRuleTemplate, ValidateRuleTemplate},
    patch::{JsonPatchOperation, apply},
    render::{render_override, render_validation},
};
use policy_cue::{CueBudget, CueInputs, CueProgram};
use serde_json::{Value, json};

/// The time limit for a template of a few kilobytes.
const PATIENCE: Duration = Duration::from_secs(2);

fuzz_target!(|input: &[u8]| {
    let Ok(Value::Array(parts)) = serde_json::from_slice(input) else {
        return;
    };
    let [template, object] = parts.as_slice() else {
        return;
    };
    let started = Instant::now();
    if let Ok(template) = serde_json::from_value::<OverrideRuleTemplate>(template.clone())
        && let Ok(program) = render_override(&template)
    {
        change(&program, object);
    }
    if let Ok(template) = serde_json::from_value::<ValidateRuleTemplate>(template.clone())
        && let Ok(program) = render_validation(&template)
    {
        match CueProgram::compile(&program) {
            Ok(program) => judge(&program, object),
            // The size of programs is checked when they are compiled, before a policy is admitted.
            Err(problems) => assert!(
                problems.to_string().contains("regular expression"),
                "{problems}\n{program}"
            ),
        }
    }
    assert!(started.elapsed() < PATIENCE, "it took {:?}", started.elapsed());
});

/// The output of a program for an object, if it has one.
fn output(program: &CueProgram, object: &Value, output: &str) -> Option<Value> {
    let data = json!({"object": object, "oldObject": {}, "extraParams": {}});
    let inputs = CueInputs::new().with_input("data", &data);
    program
        .evaluate(&inputs, output, &CueBudget::default())
        .ok()
        .flatten()
}

fn compiled(program: &str) -> CueProgram {
    CueProgram::compile(program).unwrap_or_else(|problems| panic!("{problems}\n{program}"))
}

fn change(program: &str, object: &Value) {
    let compiled = compiled(program);
    let Some(patches) = output(&compiled, object, "patches") else {
        return;
    };
    let patch = JsonPatchOperation::read(&patches).unwrap();
    let mut once = object.clone();
    if apply(&mut once, &patch).is_err() {
        return;
    }
    let Some(patches) = output(&compiled, &once, "patches") else {
        panic!("it fails on its own result\n{program}\n{once}");
    };
    let mut twice = once.clone();
    apply(&mut twice, &JsonPatchOperation::read(&patches).unwrap()).unwrap();
    assert_eq!(once, twice, "{program}");
}

fn judge(program: &CueProgram, object: &Value) {
    if let Some(verdict) = output(program, object, "validate") {
        let valid = verdict.get("valid").is_none_or(Value::is_boolean);
        let reason = verdict.get("reason").is_none_or(Value::is_string);
        assert!(valid && reason, "{verdict}");
    }
}
