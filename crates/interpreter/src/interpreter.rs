//! What every source of answers is.

use std::{error::Error, future::Future, pin::Pin, sync::Arc};

use serde_json::Value;

use crate::{Answer, Operation, Question};

/// Why one interpreter has no answer.
pub type InterpreterFailure = Box<dyn Error + Send + Sync>;

/// An answer that may take a while.
pub type Interpreting<'a> = Pin<Box<dyn Future<Output = Result<Answer, InterpreterFailure>> + Send + 'a>>;

/// What answers questions: a script, a webhook, a table.
pub trait Interpreter: Send + Sync {
    /// What it is called where it fails, for example `ResourceInterpreterCustomization clonesets`.
    fn name(&self) -> String;

    /// What becomes of those behind it.
    fn mode(&self) -> InterpretingMode {
        InterpretingMode::Replace
    }

    /// Whether whoever is behind it is asked instead, since it failed so.
    fn gives_way(&self, failure: &InterpreterFailure) -> bool {
        let _ = failure;
        false
    }

    /// Answers a question of an operation and an object that it was found for.
    fn interpret<'a>(&'a self, question: Question<'a>) -> Interpreting<'a>;
}

/// Whether others are asked as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterpretingMode {
    /// Nobody behind it is asked.
    #[default]
    Replace,
    /// Whoever is behind it is asked first: what they make of an object is what it is asked about, an object is healthy for both, and
    /// its dependencies are those of both.
    Chain,
}

/// What holds interpreters, and knows for what each is.
pub trait InterpreterSource: Send + Sync {
    /// Those that answer an operation for an object, the one that counts most first.
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>>;
}
