//! Tries scripts before they are written.
//!
//! A script is run on objects that have next to nothing, and answers for nothing that objects of its kind would have. So little of what
//! goes wrong there speaks against it:
//!
//! | what happens | refused |
//! |---|---|
//! | it cannot be loaded, whatever object it would get | yes |
//! | it lacks the function of its operation | yes |
//! | it does not end within the limits | yes |
//! | it returns something of a wrong type for each object for which it returns anything | yes |
//! | it returns nothing: what it returns may be behind a condition | no |
//! | it fails, as by a field that is not there | no |
//! | it returns a table that is no answer | no |

use serde_json::{Value, json};

use crate::{
    Operation, Question,
    lua::{LuaError, LuaLimits, LuaProgram},
};

/// Runs a script.
///
/// # Errors
///
/// What speaks against it.
pub(crate) fn dry_run(program: &LuaProgram, operation: Operation) -> Result<(), LuaError> {
    if !program.defines(operation)? {
        return Err(LuaError::NoFunction(operation.lua_function()));
    }
    let mut wrong = None;
    let mut may_be_right = false;
    for sample in samples() {
        let question = Question::new(operation, &sample, &sample, 1, Some(&[]));
        match program.interpret(question, &LuaLimits::default()) {
            Ok(_) => may_be_right = true,
            Err(LuaError::Type { found, .. }) if found == "nil" => may_be_right = true,
            Err(error @ LuaError::Type { .. }) => wrong = wrong.or(Some(error)),
            Err(
                error @ (LuaError::NoFunction(_)
                | LuaError::TooSlow { .. }
                | LuaError::TooMuch { .. }
                | LuaError::OutOfMemory(_)),
            ) => return Err(error),
            Err(LuaError::Script(_) | LuaError::Result { .. } | LuaError::Syntax(_) | LuaError::Start(_)) => {
            }
        }
    }
    match wrong {
        Some(error) if !may_be_right => Err(error),
        _ => Ok(()),
    }
}

/// Objects with nothing, with places for something, and with what many kinds have.
fn samples() -> [Value; 3] {
    let metadata =
        json!({"name": "sample", "namespace": "default", "generation": 1, "labels": {}, "annotations": {}});
    let sample = |spec: Value, status: Value| {
        json!({
            "apiVersion": "v1", "kind": "Sample", "metadata": metadata, "spec": spec, "status": status,
        })
    };
    [
        json!({"apiVersion": "v1", "kind": "Sample", "metadata": metadata}),
        sample(json!({}), json!({})),
        sample(
            json!({
                "replicas": 1,
                "template": {"metadata": {"labels": {}}, "spec": {"containers": [{"name": "sample", "image": "sample"}]}},
            }),
            json!({
                "observedGeneration": 1, "replicas": 1, "readyReplicas": 1,
                "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}],
            }),
        ),
    ]
}
