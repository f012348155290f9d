//! The interpreter of all sources.

use std::{fmt, sync::Arc};

use serde_json::Value;
use windlass_object::ObjectKey;

use crate::{
    Answer, InterpretError, Interpreter, InterpreterSource, InterpretingMode, Operation, Question,
    answer::{Component, DependentObjectReference, ReplicaRequirements},
    error::OtherAnswerError,
    question::AggregatedStatusItem,
};

/// Asks sources in the order of precedence: customizations, webhooks, built-in rules.
///
/// # Guarantees
///
/// - The first interpreter gives the whole answer, unless it chains.
/// - If it fails, the question fails: the next one is not asked, unless [`Interpreter::can_be_skipped`].
#[derive(Clone, Default)]
pub struct ResourceInterpreter {
    sources: Vec<Arc<dyn InterpreterSource>>,
}

/// The health of an object. Karmada's `ResourceHealth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectHealth {
    /// The object is healthy, or no interpreter supports its kind.
    Healthy,
    /// The object is unhealthy.
    Unhealthy,
    /// The interpreter failed.
    Unknown,
}

impl ResourceInterpreter {
    /// Creates an interpreter of `sources` in the order of precedence.
    pub fn new(sources: Vec<Arc<dyn InterpreterSource>>) -> Self {
        Self { sources }
    }

    /// Reports whether there is an interpreter for an operation and an object.
    pub fn has_interpreter(&self, operation: Operation, object: &Value) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| !source.interpreters(operation, object).is_empty())
    }

    /// Answers a question; `None` without an interpreter.
    ///
    /// # Errors
    ///
    /// When the interpreter fails.
    pub async fn ask(&self, question: Question<'_>) -> Result<Option<Answer>, InterpretError> {
        let mut answer = None;
        let mut chain = Vec::new();
        'sources: for source in &self.sources {
            for interpreter in source.interpreters(question.operation(), question.object()) {
                if interpreter.mode() == InterpretingMode::Chain {
                    chain.push(interpreter);
                    continue;
                }
                answer = interpret(&*interpreter, question).await?;
                if answer.is_some() {
                    break 'sources;
                }
            }
        }
        while let Some(interpreter) = chain.pop() {
            let next = match &answer {
                Some(Answer::Object(object)) => {
                    interpret(&*interpreter, question.with_object(object)).await?
                }
                _ => interpret(&*interpreter, question).await?,
            };
            answer = match (answer, next) {
                (Some(before), Some(next)) => Some(combine(before, next)),
                (before, next) => next.or(before),
            };
        }
        Ok(answer)
    }

    /// Returns the number of replicas of an object, and what each requires.
    ///
    /// # Errors
    ///
    /// When the interpreter fails; the same applies to the methods below.
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

    /// Returns the components of an object.
    pub async fn components(&self, object: &Value) -> Result<Option<Vec<Component>>, InterpretError> {
        let question = Question::Component { object };
        match self.ask(question).await? {
            None => Ok(None),
            Some(Answer::Component(components)) => Ok(Some(components)),
            Some(_) => Err(other_answer(question)),
        }
    }

    /// Returns the object with another number of replicas; unchanged without an interpreter.
    pub async fn revise_replicas(&self, object: &Value, replicas: i64) -> Result<Value, InterpretError> {
        self.object(Question::ReviseReplica { object, replicas }).await
    }

    /// Returns the desired object with kept values of the observed one; unchanged without an interpreter.
    pub async fn retain(&self, desired: &Value, observed: &Value) -> Result<Value, InterpretError> {
        self.object(Question::Retain { desired, observed }).await
    }

    /// Returns the object with the aggregated status of several clusters; unchanged without an interpreter.
    pub async fn aggregate_status(
        &self,
        object: &Value,
        items: &[AggregatedStatusItem],
    ) -> Result<Value, InterpretError> {
        let items = Some(items);
        self.object(Question::AggregateStatus { object, items }).await
    }

    /// Returns the part of an object's status to collect.
    pub async fn status(&self, object: &Value) -> Result<Option<Value>, InterpretError> {
        let question = Question::Status { object };
        match self.ask(question).await? {
            None => Ok(None),
            Some(Answer::Status(status)) => Ok(status),
            Some(_) => Err(other_answer(question)),
        }
    }

    /// Returns the health of an object, and the error if it is unknown.
    pub async fn health(&self, object: &Value) -> (ObjectHealth, Option<InterpretError>) {
        let question = Question::Health { object };
        match self.ask(question).await {
            Ok(None | Some(Answer::Health(true))) => (ObjectHealth::Healthy, None),
            Ok(Some(Answer::Health(false))) => (ObjectHealth::Unhealthy, None),
            Ok(Some(_)) => (ObjectHealth::Unknown, Some(other_answer(question))),
            Err(error) => (ObjectHealth::Unknown, Some(error)),
        }
    }

    /// Returns the dependencies of an object; none without an interpreter.
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

/// Asks one interpreter; `None` if it can be skipped.
async fn interpret(
    interpreter: &dyn Interpreter,
    question: Question<'_>,
) -> Result<Option<Answer>, InterpretError> {
    match interpreter.interpret(question).await {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) if interpreter.can_be_skipped(&failure) => Ok(None),
        Err(source) => Err(InterpretError {
            interpreter: interpreter.name(),
            operation: question.operation(),
            object: name(question.object()),
            source,
        }),
    }
}

/// Combines the answers of two chained interpreters.
fn combine(before: Answer, next: Answer) -> Answer {
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
    ObjectKey::from_object(object).map_or_else(
        || "an object without kind or name".to_owned(),
        |key| key.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::interpreter::{AnswerFuture, InterpreterFailure};

    /// Appends its name to an object, or fails.
    struct Named {
        name: &'static str,
        mode: InterpretingMode,
        answer: fn(&'static str, Question<'_>) -> Result<Answer, String>,
    }

    struct Source(Vec<Arc<dyn Interpreter>>);

    impl Interpreter for Named {
        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn mode(&self) -> InterpretingMode {
            self.mode
        }

        fn interpret<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
            let answer = (self.answer)(self.name, question);
            Box::pin(async { answer.map_err(Into::into) })
        }
    }

    impl InterpreterSource for Source {
        fn interpreters(&self, _: Operation, _: &Value) -> Vec<Arc<dyn Interpreter>> {
            self.0.clone()
        }
    }

    fn test_interpreter(
        name: &'static str,
        mode: InterpretingMode,
        answer: fn(&'static str, Question<'_>) -> Result<Answer, String>,
    ) -> Arc<dyn Interpreter> {
        Arc::new(Named { name, mode, answer })
    }

    /// Fails, and can be skipped.
    struct Skippable(InterpretingMode);

    impl Interpreter for Skippable {
        fn name(&self) -> String {
            "gives way".to_owned()
        }

        fn mode(&self) -> InterpretingMode {
            self.0
        }

        fn can_be_skipped(&self, _: &InterpreterFailure) -> bool {
            true
        }

        fn interpret<'a>(&'a self, _: Question<'a>) -> AnswerFuture<'a> {
            Box::pin(async { Err("broken".into()) })
        }
    }

    fn interpreter_with(sources: Vec<Vec<Arc<dyn Interpreter>>>) -> ResourceInterpreter {
        let sources = sources.into_iter().map(|interpreters| {
            let source: Arc<dyn InterpreterSource> = Arc::new(Source(interpreters));
            source
        });
        ResourceInterpreter::new(sources.collect())
    }

    /// Appends a name to those in the object.
    fn sign(name: &'static str, question: Question<'_>) -> Result<Answer, String> {
        let mut object = question.object().clone();
        let names = object["by"].as_str().unwrap_or_default().to_owned();
        object["by"] = format!("{names}{name}").into();
        Ok(Answer::Object(object))
    }

    fn fail(name: &'static str, _: Question<'_>) -> Result<Answer, String> {
        Err(format!("{name} is broken"))
    }

    fn object() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "n", "name": "p"}})
    }

    #[tokio::test]
    async fn no_interpreter_runs_after_one_that_replaces() {
        use InterpretingMode::{Chain, Replace};
        for (sources, expected) in [
            (vec![], None),
            (vec![vec![]], None),
            (
                vec![
                    vec![test_interpreter("a", Replace, sign)],
                    vec![test_interpreter("b", Replace, sign)],
                ],
                Some("a"),
            ),
            (
                vec![vec![
                    test_interpreter("a", Replace, sign),
                    test_interpreter("b", Replace, fail),
                ]],
                Some("a"),
            ),
            (
                vec![vec![], vec![test_interpreter("b", Replace, sign)]],
                Some("b"),
            ),
            (
                vec![
                    vec![test_interpreter("a", Chain, sign)],
                    vec![test_interpreter("b", Replace, sign)],
                ],
                Some("ba"),
            ),
            (
                vec![
                    vec![
                        test_interpreter("a", Chain, sign),
                        test_interpreter("b", Chain, sign),
                    ],
                    vec![
                        test_interpreter("c", Replace, sign),
                        test_interpreter("d", Replace, fail),
                    ],
                ],
                Some("cba"),
            ),
            (vec![vec![test_interpreter("a", Chain, sign)]], Some("a")),
        ] {
            let kept = interpreter_with(sources)
                .retain(&object(), &json!({}))
                .await
                .unwrap();
            assert_eq!(kept["by"].as_str(), expected);
        }
    }

    #[tokio::test]
    async fn an_error_is_final() {
        use InterpretingMode::{Chain, Replace};
        for sources in [
            vec![
                vec![test_interpreter("a", Replace, fail)],
                vec![test_interpreter("b", Replace, sign)],
            ],
            vec![
                vec![test_interpreter("b", Chain, sign)],
                vec![test_interpreter("a", Replace, fail)],
            ],
        ] {
            let interpreter = interpreter_with(sources);
            let error = interpreter.retain(&object(), &json!({})).await.unwrap_err();
            assert_eq!(error.to_string(), "a failed at Retain of Pod n/p");
            assert_eq!(error.source.to_string(), "a is broken");
        }
    }

    #[tokio::test]
    async fn a_skipped_interpreter_has_no_effect() {
        use InterpretingMode::{Chain, Replace};
        for mode in [Chain, Replace] {
            let broken = || -> Arc<dyn Interpreter> { Arc::new(Skippable(mode)) };
            for (sources, expected) in [
                (vec![vec![broken()]], None),
                (
                    vec![vec![broken()], vec![test_interpreter("b", Replace, sign)]],
                    Some("b"),
                ),
                (
                    vec![
                        vec![broken(), test_interpreter("b", Chain, sign)],
                        vec![test_interpreter("c", Replace, sign)],
                    ],
                    Some("cb"),
                ),
                (
                    vec![
                        vec![test_interpreter("a", Chain, sign), broken()],
                        vec![test_interpreter("c", Replace, sign)],
                    ],
                    Some("ca"),
                ),
            ] {
                let kept = interpreter_with(sources)
                    .retain(&object(), &json!({}))
                    .await
                    .unwrap();
                assert_eq!(kept["by"].as_str(), expected, "{mode:?}");
            }
        }
    }

    #[tokio::test]
    async fn health_is_unknown_after_an_error_and_healthy_without_interpreter() {
        use InterpretingMode::{Chain, Replace};
        let healthy = |_: &'static str, _: Question<'_>| Ok(Answer::Health(true));
        let unhealthy = |_: &'static str, _: Question<'_>| Ok(Answer::Health(false));
        for (sources, expected) in [
            (vec![], ObjectHealth::Healthy),
            (
                vec![vec![test_interpreter("a", Replace, healthy)]],
                ObjectHealth::Healthy,
            ),
            (
                vec![vec![test_interpreter("a", Replace, unhealthy)]],
                ObjectHealth::Unhealthy,
            ),
            (
                vec![vec![
                    test_interpreter("a", Chain, healthy),
                    test_interpreter("b", Replace, unhealthy),
                ]],
                ObjectHealth::Unhealthy,
            ),
            (
                vec![vec![
                    test_interpreter("a", Chain, unhealthy),
                    test_interpreter("b", Replace, healthy),
                ]],
                ObjectHealth::Unhealthy,
            ),
            (
                vec![vec![test_interpreter("a", Replace, fail)]],
                ObjectHealth::Unknown,
            ),
            (
                vec![vec![test_interpreter("a", Replace, sign)]],
                ObjectHealth::Unknown,
            ),
        ] {
            let (health, error) = interpreter_with(sources).health(&object()).await;
            assert_eq!(health, expected);
            assert_eq!(error.is_some(), expected == ObjectHealth::Unknown);
        }
    }

    #[tokio::test]
    async fn dependencies_of_a_chain_are_united() {
        use InterpretingMode::{Chain, Replace};
        let depends = |name: &'static str, _: Question<'_>| {
            let on = |name: &str| DependentObjectReference {
                api_version: "v1".to_owned(),
                kind: "Secret".to_owned(),
                name: Some(name.to_owned()),
                ..DependentObjectReference::default()
            };
            Ok(Answer::Dependency(vec![on("both"), on(name)]))
        };
        let interpreter = interpreter_with(vec![vec![
            test_interpreter("a", Chain, depends),
            test_interpreter("b", Replace, depends),
        ]]);
        let dependencies = interpreter.dependencies(&object()).await.unwrap();
        let names: Vec<_> = dependencies
            .into_iter()
            .filter_map(|reference| reference.name)
            .collect();
        assert_eq!(names, ["both", "b", "a"]);
    }
}
