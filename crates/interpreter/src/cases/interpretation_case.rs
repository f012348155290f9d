//! A test case for interpreters.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{CaseResult, Difference, compare::differences};
use crate::{
    InterpretError, Operation, Question, ResourceInterpreter, operation::UnknownOperationError,
    question::AggregatedStatusItem,
};

/// A parsed test case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterpretationCase {
    /// Name of the case, for reports.
    pub name: String,
    /// What the case shows, for readers only.
    pub description: String,
    /// The name of an [`Operation`], in any case.
    pub operation: String,
    /// The desired object.
    pub desired_obj: Option<Value>,
    /// The observed object.
    pub observed_obj: Option<Value>,
    /// The status in each cluster.
    pub status_items: Option<Vec<AggregatedStatusItem>>,
    /// The requested number of replicas.
    pub input_replicas: i64,
    /// The expected results by name.
    pub output: Map<String, Value>,
    /// Unknown fields, probably misspelled: they are ignored.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Why a test case is invalid.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum CaseError {
    /// A field has the wrong type.
    #[error("{field}: {problem}")]
    Field {
        /// The path of the field.
        field: String,
        problem: String,
    },
    /// The operation does not exist.
    #[error("operation: {0}")]
    Operation(#[from] UnknownOperationError),
    /// The object is missing.
    #[error("specify {0}")]
    Missing(&'static str),
    /// There are two objects for an operation that takes one.
    #[error("specify either desiredObj or observedObj: {0} takes one object")]
    Both(Operation),
}

/// What a passed test case leaves unchecked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CasePass {
    /// Results that the test case does not check.
    pub unchecked: Vec<&'static str>,
}

/// Why a test case fails.
#[derive(Debug, thiserror::Error)]
pub enum CaseFailure {
    /// The test case is invalid.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// The interpreter failed.
    #[error(transparent)]
    Interpret(#[from] InterpretError),
    /// No interpreter supports the operation for the object.
    #[error("no interpreter supports {0} for this object")]
    NotAnswered(Operation),
    /// The answer differs from the expected one.
    #[error("{}", list(.0))]
    Differs(Vec<Difference>),
    /// The operation has no result of this name.
    #[error("output.{0}: not a result of {1}")]
    NoResult(String, Operation),
}

impl InterpretationCase {
    /// Parses a test case.
    ///
    /// # Errors
    ///
    /// When a field has the wrong type, or the operation does not exist.
    pub fn read(document: &Value) -> Result<Self, CaseError> {
        let case: Self = serde_path_to_error::deserialize(document).map_err(|error| CaseError::Field {
            field: error.path().to_string(),
            problem: error.into_inner().to_string(),
        })?;
        case.operation()?;
        Ok(case)
    }

    /// Returns the operation.
    ///
    /// # Errors
    ///
    /// When the operation does not exist.
    pub fn operation(&self) -> Result<Operation, UnknownOperationError> {
        self.operation.parse()
    }

    /// Returns the question.
    ///
    /// # Errors
    ///
    /// When an object is missing, or there is one too many.
    pub fn question(&self) -> Result<Question<'_>, CaseError> {
        let operation = self.operation()?;
        let (object, observed) = match (operation, &self.desired_obj, &self.observed_obj) {
            (Operation::Retain, Some(desired), Some(observed)) => (desired, observed),
            (Operation::Retain, None, _) => return Err(CaseError::Missing("desiredObj")),
            (Operation::Retain, _, None) => return Err(CaseError::Missing("observedObj")),
            (_, Some(object), None) | (_, None, Some(object)) => (object, &Value::Null),
            (_, None, None) => return Err(CaseError::Missing("desiredObj or observedObj")),
            (_, Some(_), Some(_)) => return Err(CaseError::Both(operation)),
        };
        let items = self.status_items.as_deref();
        Ok(Question::new(
            operation,
            object,
            observed,
            self.input_replicas,
            items,
        ))
    }

    /// Asks the question and compares the answer.
    ///
    /// # Errors
    ///
    /// Why the test case fails.
    pub async fn run(&self, interpreter: &ResourceInterpreter) -> Result<CasePass, CaseFailure> {
        let question = self.question()?;
        let operation = question.operation();
        let answer = interpreter.ask(question).await?;
        let answer = answer.ok_or(CaseFailure::NotAnswered(operation))?;
        let results = CaseResult::from_answer(operation, &answer);
        let is_result = |name: &&String| results.iter().any(|result| result.name == **name);
        if let Some(name) = self.output.keys().find(|name| !is_result(name)) {
            return Err(CaseFailure::NoResult(name.clone(), operation));
        }
        let mut pass = CasePass::default();
        let mut found = Vec::new();
        for result in &results {
            match self.output.get(result.name) {
                Some(expected) => found.extend(differences(expected, result)),
                None => pass.unchecked.push(result.name),
            }
        }
        match found.is_empty() {
            true => Ok(pass),
            false => Err(CaseFailure::Differs(found)),
        }
    }
}

fn list(differences: &[Difference]) -> String {
    let lines: Vec<_> = differences.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{Answer, Interpreter, InterpreterSource, interpreter::AnswerFuture};

    /// Answers replicas with the object's, health with `true`, and nothing else.
    struct Known;

    impl Interpreter for Known {
        fn name(&self) -> String {
            "known".to_owned()
        }

        fn interpret<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
            let answer = match question {
                Question::Replica { object } => Answer::Replica {
                    replicas: object["replicas"]
                        .as_i64()
                        .and_then(|replicas| replicas.try_into().ok())
                        .unwrap_or_default(),
                    requirements: None,
                },
                _ => Answer::Health(true),
            };
            Box::pin(async { Ok(answer) })
        }
    }

    impl InterpreterSource for Known {
        fn interpreters(&self, operation: Operation, _: &Value) -> Vec<Arc<dyn Interpreter>> {
            match operation {
                Operation::InterpretReplica | Operation::InterpretHealth => vec![Arc::new(Self)],
                _ => vec![],
            }
        }
    }

    async fn run(document: Value) -> String {
        let interpreter = ResourceInterpreter::new(vec![Arc::new(Known)]);
        let case = match InterpretationCase::read(&document) {
            Ok(case) => case,
            Err(error) => return error.to_string(),
        };
        match case.run(&interpreter).await {
            Ok(pass) => format!("passes, unchecked: {:?}", pass.unchecked),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn a_case_passes_or_fails_with_a_reason() {
        let object = json!({"kind": "Pod", "replicas": 3});
        for (document, expected) in [
            (
                json!({"operation": "interpretreplica", "desiredObj": object, "output": {"replica": 3}}),
                r#"passes, unchecked: ["requires"]"#,
            ),
            (
                json!({"operation": "InterpretHealth", "observedObj": object}),
                r#"passes, unchecked: ["healthy"]"#,
            ),
            (
                json!({"operation": "InterpretReplica", "desiredObj": object, "output": {"replica": 2}}),
                "replica: expected 2, not 3",
            ),
            (
                json!({"operation": "InterpretReplica", "desiredObj": object, "output": {"replicas": 3}}),
                "output.replicas: not a result of InterpretReplica",
            ),
            (
                json!({"operation": "InterpretStatus", "desiredObj": object}),
                "no interpreter supports InterpretStatus for this object",
            ),
            (
                json!({"operation": "InterpretHealth"}),
                "specify desiredObj or observedObj",
            ),
            (
                json!({"operation": "Retain", "desiredObj": object}),
                "specify observedObj",
            ),
            (
                json!({"operation": "InterpretHealth", "desiredObj": object, "observedObj": object}),
                "specify either desiredObj or observedObj: InterpretHealth takes one object",
            ),
            (
                json!({"operation": "InterpretHealth", "inputReplicas": "two"}),
                "inputReplicas: invalid type: string \"two\", expected i64",
            ),
        ] {
            assert_eq!(run(document).await, expected);
        }
        assert!(
            run(json!({"operation": "Prune"}))
                .await
                .starts_with("operation: \"Prune\" is not an operation")
        );
    }

    #[test]
    fn misspelled_fields_are_reported() {
        let case = InterpretationCase::read(&json!({"operation": "Retain", "outputs": {}})).unwrap();
        assert!(case.unknown.contains_key("outputs"));
    }
}
