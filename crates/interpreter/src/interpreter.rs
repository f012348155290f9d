//! The interface of interpreters.

use std::{error::Error, future::Future, pin::Pin, sync::Arc};

use serde_json::Value;

use crate::{Answer, Operation, Question};

/// Why an interpreter has no answer.
pub type InterpreterFailure = Box<dyn Error + Send + Sync>;

/// The result of [`Interpreter::interpret`]: resolves to the answer or the failure.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<Answer, InterpreterFailure>> + Send + 'a>>;

/// Answers questions about objects: a script, a webhook, or built-in rules.
pub trait Interpreter: Send + Sync {
    /// The name for error messages, for example `ResourceInterpreterCustomization clonesets`.
    fn name(&self) -> String;

    /// Whether interpreters with lower precedence run as well.
    fn mode(&self) -> InterpretingMode {
        InterpretingMode::Replace
    }

    /// Reports whether the next interpreter is used instead after this failure.
    fn can_be_skipped(&self, failure: &InterpreterFailure) -> bool {
        let _ = failure;
        false
    }

    /// Answers a question of the operation and object that this interpreter was selected for.
    fn interpret<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a>;
}

/// Whether interpreters with lower precedence run as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterpretingMode {
    /// Interpreters with lower precedence do not run.
    #[default]
    Replace,
    /// Interpreters with lower precedence run first, and this one gets the object that they return. An object
    /// is healthy if both report so, and its dependencies are those of both.
    Chain,
}

/// A collection of interpreters.
pub trait InterpreterSource: Send + Sync {
    /// Returns the interpreters for an operation and an object, in the order of precedence.
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>>;
}
