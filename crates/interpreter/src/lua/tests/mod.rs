//! Valid and hostile scripts.

mod as_karmada;
mod attacks;
mod beyond;
mod compiling;
mod conversion;
mod dialect;
mod hostile;
mod operations;

use serde_json::{Value, json};

use super::{LuaError, LuaLimits, LuaProgram};
use crate::{Answer, Question};

/// Low limits on instructions, so that unoptimized tests are fast, and enough time for busy machines.
const LIMITS: LuaLimits = LuaLimits {
    time: std::time::Duration::from_secs(10),
    instructions: 2_000_000,
    memory: 16 << 20,
};

/// Runs a function body and returns its result.
fn run(body: &str) -> Result<Value, LuaError> {
    let script = format!("function ReflectStatus(obj) return {{ value = (function() {body} end)() }} end");
    let program = LuaProgram::compile("test", &script)?;
    let question = Question::Status { object: &json!({}) };
    match program.interpret(question, &LIMITS)? {
        Answer::Status(Some(status)) => Ok(status["value"].clone()),
        other => panic!("{other:?}"),
    }
}

fn run_error(body: &str) -> String {
    run(body).unwrap_err().to_string()
}
