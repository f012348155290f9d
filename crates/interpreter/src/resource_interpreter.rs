//! Asks whoever knows.

use std::{fmt, sync::Arc};

use serde_json::Value;
use windlass_object::ObjectKey;

use crate::{
    Answer, InterpretError, Interpreter, InterpreterSource, InterpretingMode, Operation, Question,
    answer::{Component, DependentObjectReference, ReplicaRequirements},
    error::OtherAnswerError,
    question::AggregatedStatusItem,
};

/// Asks sources in their order: customizations before webhooks before what is known of Kubernetes' own kinds.
///
/// # Guarantees
///
/// - The first that answers counts, whole, unless it chains.
/// - Where it fails, that is the answer: nobody behind it is asked instead.
#[derive(Clone, Default)]
pub struct ResourceInterpreter {
    sources: Vec<Arc<dyn InterpreterSource>>,
}

/// Whether an object does what it is for, as far as anybody knows. Karmada's `ResourceHealth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectHealth {
    /// It does, or nobody knows its kind.
    Healthy,
    /// It does not.
    Unhealthy,
    /// Whoever knows its kind failed.
    Unknown,
}

// === impl ResourceInterpreter ===

impl ResourceInterpreter {
    /// Asks `sources`, the one that counts most first.
    pub fn new(sources: Vec<Arc<dyn InterpreterSource>>) -> Self {
        Self { sources }
    }

    /// Whether anybody answers an operation for an object.
    pub fn is_answered(&self, operation: Operation, object: &Value) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| !source.interpreters(operation, object).is_empty())
    }

    /// Answers a question; `None` where nobody does.
    ///
    /// # Errors
    ///
    /// When whoever is asked fails.
    pub async fn ask(&self, question: Question<'_>) -> Result<Option<Answer>, InterpretError> {
        let mut asked = Vec::new();
        'sources: for source in &self.sources {
            for interpreter in source.interpreters(question.operation(), question.object()) {
                let is_last = interpreter.mode() == InterpretingMode::Replace;
                asked.push(interpreter);
                if is_last {
                    break 'sources;
                }
            }
        }
        let mut answer: Option<Answer> = None;
        while let Some(interpreter) = asked.pop() {
            let next = match &answer {
                Some(Answer::Object(object)) => interpret(&*interpreter, question.about(object)).await?,
                _ => interpret(&*interpreter, question).await?,
            };
            answer = Some(match answer {
                None => next,
                Some(before) => chained(before, next),
            });
        }
        Ok(answer)
    }

    /// How many replicas an object has, and what each needs.
    ///
    /// # Errors
    ///
    /// When whoever is asked fails; so for the others.
    pub async fn replicas(
        &self,
        object: &Value,
    ) -> Result<Option<(i32, Option<ReplicaRequirements>)>, InterpretError> {
        let question = Question::Replica { object };
        match self.ask(question).await? {
            None => Ok(None),
            Some(Answer::Replica {
                replicas,
                requirements,
            }) => Ok(Some((replicas, requirements))),
            Some(_) => Err(other_answer(question)),
        }
    }

    /// What an object is made of.
    pub async fn components(&self, object: &Value) -> Result<Option<Vec<Component>>, InterpretError> {
        let question = Question::Component { object };
        match self.ask(question).await? {
            None => Ok(None),
            Some(Answer::Component(components)) => Ok(Some(components)),
            Some(_) => Err(other_answer(question)),
        }
    }

    /// The object with other replicas; as it is where nobody knows its kind.
    pub async fn revise_replicas(&self, object: &Value, replicas: i64) -> Result<Value, InterpretError> {
        self.object(Question::ReviseReplica { object, replicas }).await
    }

    /// The desired object with what must be kept of the observed one; as it is where nobody knows its kind.
    pub async fn retain(&self, desired: &Value, observed: &Value) -> Result<Value, InterpretError> {
        self.object(Question::Retain { desired, observed }).await
    }

    /// The object with the status of several clusters; as it is where nobody knows its kind.
    pub async fn aggregate_status(
        &self,
        object: &Value,
        items: &[AggregatedStatusItem],
    ) -> Result<Value, InterpretError> {
        let items = Some(items);
        self.object(Question::AggregateStatus { object, items }).await
    }

    /// What of an object's status is worth collecting.
    pub async fn status(&self, object: &Value) -> Result<Option<Value>, InterpretError> {
        let question = Question::Status { object };
        match self.ask(question).await? {
            None => Ok(None),
            Some(Answer::Status(status)) => Ok(status),
            Some(_) => Err(other_answer(question)),
        }
    }

    /// Whether an object does what it is for, and why that is not known.
    pub async fn health(&self, object: &Value) -> (ObjectHealth, Option<InterpretError>) {
        let question = Question::Health { object };
        match self.ask(question).await {
            Ok(None | Some(Answer::Health(true))) => (ObjectHealth::Healthy, None),
            Ok(Some(Answer::Health(false))) => (ObjectHealth::Unhealthy, None),
            Ok(Some(_)) => (ObjectHealth::Unknown, Some(other_answer(question))),
            Err(error) => (ObjectHealth::Unknown, Some(error)),
        }
    }

    /// What an object needs beside it; nothing where nobody knows its kind.
    pub async fn dependencies(
        &self,
        object: &Value,
    ) -> Result<Vec<DependentObjectReference>, InterpretError> {
        let question = Question::Dependency { object };
        match self.ask(question).await? {
            None => Ok(Vec::new()),
            Some(Answer::Dependency(dependencies)) => Ok(dependencies),
            Some(_) => Err(other_answer(question)),
        }
    }

    async fn object(&self, question: Question<'_>) -> Result<Value, InterpretError> {
        match self.ask(question).await? {
            None => Ok(question.object().clone()),
            Some(Answer::Object(object)) => Ok(object),
            Some(_) => Err(other_answer(question)),
        }
    }
}

impl fmt::Debug for ResourceInterpreter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ResourceInterpreter")
            .finish_non_exhaustive()
    }
}

async fn interpret(interpreter: &dyn Interpreter, question: Question<'_>) -> Result<Answer, InterpretError> {
    let answered = interpreter.interpret(question).await;
    answered.map_err(|source| InterpretError {
        interpreter: interpreter.name(),
        operation: question.operation(),
        object: name(question.object()),
        source,
    })
}

/// What two say who are both asked.
fn chained(before: Answer, next: Answer) -> Answer {
    match (before, next) {
        (Answer::Health(before), Answer::Health(next)) => Answer::Health(before && next),
        (Answer::Dependency(mut before), Answer::Dependency(next)) => {
            for reference in next {
                if !before.contains(&reference) {
                    before.push(reference);
                }
            }
            Answer::Dependency(before)
        }
        (_, next) => next,
    }
}

fn other_answer(question: Question<'_>) -> InterpretError {
    InterpretError {
        interpreter: "An interpreter".to_owned(),
        operation: question.operation(),
        object: name(question.object()),
        source: OtherAnswerError(question.operation()).into(),
    }
}

fn name(object: &Value) -> String {
    ObjectKey::of(object).map_or_else(
        || "an object without kind or name".to_owned(),
        |key| key.to_string(),
    )
}
