//! Compiled scripts.

use std::{fmt, sync::Arc};

use mlua::{Lua, MultiValue, Value as LuaValue};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{LuaError, LuaLimits, LuaTrace, answers, lua_state::LuaState, to_lua::to_lua, trace::Tracing};
use crate::{Answer, Operation, Question};

/// A compiled script. Clones share it.
///
/// # Guarantees
///
/// - Calls are isolated from each other: neither globals nor changes of libraries persist.
/// - A call ends within its limits. A state in which a limit was exceeded is discarded.
#[derive(Clone)]
pub struct LuaProgram(Arc<Compiled>);

struct Compiled {
    name: String,
    script: String,
    idle: Mutex<Vec<LuaState>>,
}

/// The number of idle states to keep.
const IDLE: usize = 4;

impl LuaProgram {
    /// Compiles a script for an operation; `name` is its name in errors. A script for retention may be only
    /// the body of the function, as in Karmada's proposal: see [`Self::compile_retention`].
    ///
    /// # Errors
    ///
    /// The syntax error with its line.
    pub fn compile_for(name: &str, operation: Operation, script: &str) -> Result<Self, LuaError> {
        match operation {
            Operation::Retain => Self::compile_retention(name, script),
            _ => Self::compile(name, script),
        }
    }

    /// Compiles a script; `name` is its name in errors.
    ///
    /// # Errors
    ///
    /// The syntax error with its line.
    pub fn compile(name: &str, script: &str) -> Result<Self, LuaError> {
        let state = LuaState::new(name, script)?;
        Ok(Self(Arc::new(Compiled {
            name: name.to_owned(),
            script: script.to_owned(),
            idle: Mutex::new(vec![state]),
        })))
    }

    /// Compiles a script for retention: if it does not define the function `Retain`, it is the body of one
    /// with the parameters `desiredObj` and `runtimeObj`.
    ///
    /// # Errors
    ///
    /// The syntax error with its line.
    pub fn compile_retention(name: &str, script: &str) -> Result<Self, LuaError> {
        let whole = Self::compile(name, script)?;
        // A function body fails when it runs as a script, because its parameters are nil.
        if whole.defines(Operation::Retain).unwrap_or(false) {
            return Ok(whole);
        }
        let body = format!("function Retain(desiredObj, runtimeObj) {script}\nend");
        Self::compile(name, &body).map_or(Ok(whole), Ok)
    }

    /// Reports whether the script defines the function of an operation.
    ///
    /// # Errors
    ///
    /// When the script fails before that.
    pub fn defines(&self, operation: Operation) -> Result<bool, LuaError> {
        let state = self.state()?;
        let defines = state.defines(operation.lua_function(), LuaLimits::default());
        self.keep(state, defines.as_ref().err());
        defines
    }

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// [`LuaError`]
    pub fn interpret(&self, question: Question<'_>, limits: &LuaLimits) -> Result<Answer, LuaError> {
        let state = self.state()?;
        let answer = Self::interpret_in(&state, question, *limits);
        self.keep(state, answer.as_ref().err());
        answer
    }

    /// Answers a question and records each executed line.
    ///
    /// # Errors
    ///
    /// When no state can be created. Errors of the script are in the trace.
    pub fn trace(&self, question: Question<'_>, limits: &LuaLimits) -> Result<LuaTrace, LuaError> {
        let state = self.state()?;
        let tracing = Tracing::begin();
        let noting = tracing.clone();
        let answer = state.call_traced(question, *limits, move |line, memory| noting.note(line, memory));
        Ok(tracing.end(&self.0.name, &self.0.script, answer))
    }

    fn interpret_in(state: &LuaState, question: Question<'_>, limits: LuaLimits) -> Result<Answer, LuaError> {
        let function = question.operation().lua_function();
        let values = state.call(function, limits, |lua| arguments(lua, question), || Ok(()))?;
        answers::read(question, &values, limits).map_err(LuaError::shortened)
    }

    fn state(&self) -> Result<LuaState, LuaError> {
        let idle = self.0.idle.lock().pop();
        idle.map_or_else(|| LuaState::new(&self.0.name, &self.0.script), Ok)
    }

    fn keep(&self, state: LuaState, failed: Option<&LuaError>) {
        if failed.is_some_and(LuaError::is_final) || !state.collect_garbage() {
            return;
        }
        let mut idle = self.0.idle.lock();
        if idle.len() < IDLE {
            idle.push(state);
        }
    }
}

impl LuaState {
    fn call_traced(
        &self,
        question: Question<'_>,
        limits: LuaLimits,
        on_line: impl Fn(usize, usize) + Send + 'static,
    ) -> Result<Answer, LuaError> {
        let function = question.operation().lua_function();
        let arguments = |lua: &Lua| arguments(lua, question);
        let values = self.call(function, limits, arguments, || self.trace(on_line))?;
        answers::read(question, &values, limits).map_err(LuaError::shortened)
    }
}

/// Returns the arguments of the function for a question.
fn arguments(lua: &Lua, question: Question<'_>) -> mlua::Result<MultiValue> {
    let object = |value: &Value| to_lua(lua, value);
    let arguments = match question {
        Question::Retain { desired, observed } => vec![object(desired)?, object(observed)?],
        #[expect(clippy::cast_precision_loss, reason = "Lua numbers are floats")]
        Question::ReviseReplica { object: of, replicas } => {
            vec![object(of)?, LuaValue::Number(replicas as f64)]
        }
        Question::AggregateStatus { object: of, items } => {
            let items = items.map_or(Ok(LuaValue::Nil), |items| object(&json!(items)))?;
            vec![object(of)?, items]
        }
        question => vec![object(question.object())?],
    };
    Ok(arguments.into_iter().collect())
}

impl fmt::Debug for LuaProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("LuaProgram").field(&self.0.name).finish()
    }
}
