//! Scripts of customizations, where this is built with Lua.

#[cfg(not(feature = "lua"))]
use std::convert::Infallible as Program;

#[cfg(feature = "lua")]
use crate::lua::{LuaLimits, LuaProgram as Program};
use crate::{Answer, Operation, Question, interpreter::InterpreterFailure};

/// A script, compiled. Without Lua there is none.
#[derive(Clone)]
pub(crate) struct Script {
    program: Program,
}

// === impl Script ===

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

    /// What it is to be tried with.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

#[cfg(not(feature = "lua"))]
impl Script {
    /// Fails: there is nobody to run it.
    pub(crate) fn compile(_: &str, _: Operation, _: &str) -> Result<Self, InterpreterFailure> {
        Err("must not be given: built without Lua".into())
    }

    /// Is never called.
    pub(crate) fn interpret(&self, _: Question<'_>) -> Result<Answer, InterpreterFailure> {
        match self.program {}
    }
}
