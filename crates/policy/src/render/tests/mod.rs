//! Runs rendered programs on objects. Test names with `d` and a number refer to defects of kinitiras that are
//! avoided; those with `row` to the use cases of its templates.

mod affinity;
mod condition;
mod goldens;
mod metadata;
mod oversell;
mod problems;
mod properties;
mod references;
mod resources;
mod tolerations;

use policy_cue::{CueBudget, CueInputs, CueProgram};
use serde_json::{Value, json};

use crate::patch::{JsonPatchOperation, apply};

use super::{render_override, render_validation};

fn override_program(template: &Value) -> String {
    let template = serde_json::from_value(template.clone()).unwrap();
    render_override(&template).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn validation_program(condition: &Value) -> String {
    let template = json!({"type": "condition", "condition": condition});
    let template = serde_json::from_value(template).unwrap();
    render_validation(&template).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn override_problems(template: &Value) -> Vec<String> {
    let template = serde_json::from_value(template.clone()).unwrap();
    let problems = render_override(&template).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

fn condition_problems(condition: &Value) -> Vec<String> {
    let template = json!({"type": "condition", "condition": condition});
    let template = serde_json::from_value(template).unwrap();
    let problems = render_validation(&template).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

fn run(program: &str, data: &Value, output: &str) -> Result<Value, String> {
    let compiled = CueProgram::compile(program).unwrap_or_else(|problems| panic!("{problems}\n{program}"));
    let inputs = CueInputs::new().with_input("data", data);
    let output = compiled.evaluate(&inputs, output, &CueBudget::default());
    output
        .map(Option::unwrap_or_default)
        .map_err(|error| error.to_string())
}

/// Returns the patches that an override template yields for `data`.
fn patches(template: &Value, data: &Value) -> Value {
    let program = override_program(template);
    run(&program, data, "patches").unwrap_or_else(|error| panic!("{error}\n{program}"))
}

/// The object of `data` after a template. The patches conform to RFC 6902.
fn overridden_with(template: &Value, data: &Value) -> Value {
    let patches = patches(template, data);
    let mut object = data["object"].clone();
    let patch: json_patch::Patch = serde_json::from_value(patches.clone()).unwrap();
    json_patch::patch(&mut object, &patch).unwrap();
    let mut same = data["object"].clone();
    apply(&mut same, &JsonPatchOperation::read(&patches).unwrap()).unwrap();
    assert_eq!(object, same);
    object
}

/// An object after a template.
fn overridden(template: &Value, object: &Value) -> Value {
    overridden_with(
        template,
        &json!({"object": object, "oldObject": {}, "extraParams": {}}),
    )
}

/// The reason for which a condition refuses `data`.
fn refused_with(condition: &Value, data: &Value) -> Option<String> {
    let program = validation_program(condition);
    let verdict = run(&program, data, "validate").unwrap_or_else(|error| panic!("{error}\n{program}"));
    let reason = verdict
        .get("reason")
        .map(|reason| reason.as_str().unwrap().to_owned());
    assert_eq!(verdict["valid"], reason.is_none(), "{verdict}");
    reason
}

/// A pod with these fields in its spec.
fn pod(spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "app"}]},
    });
    for (name, value) in spec.as_object().unwrap() {
        pod["spec"][name] = value.clone();
    }
    pod
}

/// The path of the pod spec in each kind.
const WORKLOADS: [(&str, &str); 9] = [
    ("Pod", "/spec"),
    ("Deployment", "/spec/template/spec"),
    ("StatefulSet", "/spec/template/spec"),
    ("DaemonSet", "/spec/template/spec"),
    ("ReplicaSet", "/spec/template/spec"),
    ("ReplicationController", "/spec/template/spec"),
    ("Job", "/spec/template/spec"),
    ("Rollout", "/spec/template/spec"),
    ("CronJob", "/spec/jobTemplate/spec/template/spec"),
];

/// An object of each kind with this pod spec, and its path.
fn workloads(spec: &Value) -> impl Iterator<Item = (Value, &'static str)> {
    WORKLOADS
        .map(|(kind, place)| {
            let mut nested = spec.clone();
            for name in place.split('/').skip(1).collect::<Vec<_>>().into_iter().rev() {
                nested = json!({ name: nested });
            }
            let mut object = json!({"kind": kind, "metadata": {"name": "a"}});
            object["spec"] = nested["spec"].clone();
            (object, place)
        })
        .into_iter()
}
