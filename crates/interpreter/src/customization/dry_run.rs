//! Runs scripts with sample objects before they are accepted.
//!
//! The samples have few fields, so most failures do not reject a script:
//!
//! | result | rejected |
//! |---|---|
//! | it cannot be loaded, whatever the object | yes |
//! | it lacks the function of its operation | yes |
//! | it exceeds the limits | yes |
//! | it returns a value of the wrong type for each object for which it returns anything | yes |
//! | it returns nothing: the result may depend on a condition | no |
//! | it fails, for example because of a missing field | no |
//! | it returns a table that is not a valid answer | no |

use serde_json::{Value, json};

use crate::{
    Operation, Question,
    lua::{LuaError, LuaLimits, LuaProgram},
};

/// Runs a script.
///
/// # Errors
///
/// The reason to reject it.
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

/// An empty object, one with empty fields, and one with common fields.
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
