//! What is known of Kubernetes' own kinds, each in exactly one version: Karmada's tables (`pkg/resourceinterpreter/default/native`).
//!
//! Where we differ, on purpose:
//!
//! - Jobs, CustomResourceDefinitions, APIServices and Namespaces have health, too. CronJobs are healthy: their Jobs say how they are.
//! - `resourcetemplate.karmada.io/retain-replicas` keeps the replicas of StatefulSets, too, and counts on the observed object as well.
//! - The lists of a ServiceAccount are written only where one of both objects has them.
//! - A field of another type than its kind has is an error that names it.

mod dependencies;
mod field;
mod health;
mod replicas;
mod retain;
mod status;

use std::sync::Arc;

use serde_json::Value;
use windlass_object::object;

pub use self::{field::FieldTypeError, retain::retain_metadata};
use crate::{
    Answer, Interpreter, InterpreterSource, Operation, Question,
    interpreter::{InterpreterFailure, Interpreting},
};

/// What is known of Kubernetes' own kinds, and of kinds whose health is one of their conditions.
#[derive(Clone, Debug, Default)]
pub struct NativeInterpreter {
    by_condition: Vec<ConditionHealth>,
}

/// A kind that is healthy when one of its conditions holds.
#[derive(Clone, Debug)]
struct ConditionHealth {
    api_version: String,
    kind: String,
    condition: String,
}

/// What answers one question about one kind.
type Answering = fn(Question<'_>) -> Result<Answer, FieldTypeError>;

/// An entry of the tables.
struct NativeAnswer(Answering);

// === impl NativeInterpreter ===

impl NativeInterpreter {
    /// What is known of Kubernetes' own kinds.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, and of another kind that it is healthy when a condition is `True` and was observed of this generation.
    #[must_use]
    pub fn with_condition_health(mut self, api_version: &str, kind: &str, condition: &str) -> Self {
        self.by_condition.push(ConditionHealth {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            condition: condition.to_owned(),
        });
        self
    }
}

impl InterpreterSource for NativeInterpreter {
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>> {
        let text = |pointer| object::text(object, pointer).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        if operation == Operation::InterpretHealth {
            let is_it = |known: &&ConditionHealth| known.api_version == api_version && known.kind == kind;
            if let Some(known) = self.by_condition.iter().find(is_it) {
                return vec![Arc::new(known.clone())];
            }
        }
        let answering = match operation {
            Operation::InterpretHealth => health::of(api_version, kind),
            Operation::InterpretReplica => replicas::of(api_version, kind),
            Operation::ReviseReplica => replicas::revising(api_version, kind),
            Operation::Retain => retain::of(api_version, kind),
            Operation::InterpretDependency => dependencies::of(api_version, kind),
            Operation::InterpretStatus => Some(status::of(api_version, kind)),
            Operation::InterpretComponent | Operation::AggregateStatus => None,
        };
        answering
            .map(|answering| -> Arc<dyn Interpreter> { Arc::new(NativeAnswer(answering)) })
            .into_iter()
            .collect()
    }
}

// === impl NativeAnswer ===

impl Interpreter for NativeAnswer {
    fn name(&self) -> String {
        "the native interpreter".to_owned()
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> Interpreting<'a> {
        Box::pin(async move { (self.0)(question).map_err(InterpreterFailure::from) })
    }
}

// === impl ConditionHealth ===

impl Interpreter for ConditionHealth {
    fn name(&self) -> String {
        "the native interpreter".to_owned()
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> Interpreting<'a> {
        let is_healthy = health::by_condition(question.object(), &self.condition);
        Box::pin(async move { Ok(Answer::Health(is_healthy)) })
    }
}
