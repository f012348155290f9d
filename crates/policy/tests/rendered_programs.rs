//! Compares rendered templates and their results with recorded ones of CUE v0.4.3, made by `vectors/make.js`.

#![expect(clippy::panic, clippy::unwrap_used, reason = "an invalid file fails the test")]

use std::{collections::BTreeMap, fs};

use policy::{
    api::{OverrideRuleTemplate, ValidateRuleTemplate},
    patch::{JsonPatchOperation, apply},
    render::{render_override, render_validation},
};
use policy_cue::{CueBudget, CueInputs, CueProgram};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct KnownTemplate {
    name: String,
    template: Template,
    program: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Template {
    Override(Box<OverrideRuleTemplate>),
    Validation(Box<ValidateRuleTemplate>),
}

/// A template, an input, and CUE's result.
#[derive(Deserialize)]
struct Vector {
    template: String,
    input: String,
    /// Missing for a value.
    outcome: Option<String>,
    output: Option<Value>,
}

/// A program, and its output field.
struct Compiled {
    program: CueProgram,
    output: &'static str,
}

fn read(name: &str) -> String {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).unwrap()
}

fn lines<T: for<'a> Deserialize<'a>>(name: &str) -> Vec<T> {
    let text = read(name);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn compiled() -> BTreeMap<String, Compiled> {
    let compiled = lines::<KnownTemplate>("templates.jsonl")
        .into_iter()
        .map(|known| {
            let program = CueProgram::compile(&known.program);
            let program = program.unwrap_or_else(|problems| panic!("{}: {problems}", known.name));
            let output = match known.template {
                Template::Override(_) => "patches",
                Template::Validation(_) => "validate",
            };
            (known.name, Compiled { program, output })
        });
    compiled.collect()
}

fn inputs() -> BTreeMap<String, Value> {
    serde_json::from_str(&read("inputs.json")).unwrap()
}

impl Compiled {
    fn output(&self, data: &Value) -> Result<Option<Value>, String> {
        let inputs = CueInputs::new().with_input("data", data);
        let output = self.program.evaluate(&inputs, self.output, &CueBudget::default());
        output.map_err(|error| error.to_string())
    }
}

/// Applies patches with a library that conforms to RFC 6902 and with the crate's own code, and returns both
/// results.
fn patched(object: &Value, patches: &Value) -> Value {
    let mut by_rfc = object.clone();
    let patch: json_patch::Patch = serde_json::from_value(patches.clone()).unwrap();
    json_patch::patch(&mut by_rfc, &patch).unwrap();
    let mut by_us = object.clone();
    apply(&mut by_us, &JsonPatchOperation::read(patches).unwrap()).unwrap();
    assert_eq!(by_rfc, by_us);
    by_us
}

#[test]
fn templates_render_to_the_recorded_programs() {
    let known = lines::<KnownTemplate>("templates.jsonl");
    assert!(known.len() > 200);
    for known in known {
        let program = match &known.template {
            Template::Override(template) => render_override(template),
            Template::Validation(template) => render_validation(template),
        };
        assert_eq!(program.as_ref(), Ok(&known.program), "{}", known.name);
    }
}

#[test]
fn policy_cue_yields_the_results_of_cue() {
    let (compiled, inputs) = (compiled(), inputs());
    let vectors = lines::<Vector>("vectors.jsonl");
    assert!(vectors.len() > 3000);
    let mut wrong = Vec::new();
    for vector in &vectors {
        let given = compiled[&vector.template].output(&inputs[&vector.input]);
        let is_right = match (&given, vector.outcome.as_deref()) {
            (Ok(given), None) => *given == vector.output,
            (Err(_), Some("incomplete" | "error")) => true,
            _ => false,
        };
        if !is_right {
            let Vector { template, input, .. } = vector;
            wrong.push(format!("{template} {input}: {given:?}, not {:?}", vector.output));
        }
    }
    let count = wrong.len();
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{count} differ\n{}", wrong.join("\n"));
}

#[test]
fn patches_conform_to_the_rfc_and_are_idempotent() {
    let (compiled, inputs) = (compiled(), inputs());
    let mut changed = 0;
    for vector in lines::<Vector>("vectors.jsonl") {
        let compiled = &compiled[&vector.template];
        let Some(patches) = vector.output.filter(|_| compiled.output == "patches") else {
            continue;
        };
        let data = &inputs[&vector.input];
        let once = patched(&data["object"], &patches);
        changed += usize::from(once != data["object"]);
        let mut again = data.clone();
        again["object"] = once.clone();
        let patches = compiled.output(&again).unwrap().unwrap();
        assert_eq!(
            patched(&once, &patches),
            once,
            "{} {}",
            vector.template,
            vector.input
        );
    }
    assert!(changed > 500, "{changed}");
}
