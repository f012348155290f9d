//! Scripts of customizations; they need the feature for Lua.

#[cfg(not(feature = "lua"))]
use std::convert::Infallible as Program;

#[cfg(feature = "lua")]
use crate::lua::{LuaLimits, LuaProgram as Program};
use crate::{Answer, Operation, Question, interpreter::InterpreterFailure};

/// A compiled script. Without Lua no value exists.
#[derive(Clone)]
pub(crate) struct Script {
    program: Program,
}

#[cfg(feature = "lua")]
impl Script {
    /// Compiles a script for an operation.
    pub(crate) fn compile(
        name: &str,
        operation: Operation,
        script: &str,
    ) -> Result<Self, InterpreterFailure> {
        let program = Program::compile_for(name, operation, script)?;
        Ok(Self { program })
    }

    /// Answers a question with the function of its operation.
    pub(crate) fn interpret(&self, question: Question<'_>) -> Result<Answer, InterpreterFailure> {
        Ok(self.program.interpret(question, &LuaLimits::default())?)
    }

    /// The program for a dry run.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

#[cfg(not(feature = "lua"))]
impl Script {
    /// Fails, because there is no Lua.
    pub(crate) fn compile(_: &str, _: Operation, _: &str) -> Result<Self, InterpreterFailure> {
        Err("is not supported: built without Lua".into())
    }

    /// Unreachable.
    pub(crate) fn interpret(&self, _: Question<'_>) -> Result<Answer, InterpreterFailure> {
        match self.program {}
    }
}
