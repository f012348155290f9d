//! One case: objects, a question, and what is expected.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{CaseResult, Difference, compare::differences};
use crate::{
    InterpretError, Operation, Question, ResourceInterpreter, operation::UnknownOperationError,
    question::AggregatedStatusItem,
};

/// A case as it is written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterpretationCase {
    /// What is tried.
    pub name: String,
    /// The same in more words.
    pub description: String,
    /// The name of an [`Operation`], in any case.
    pub operation: String,
    /// The object as it is desired.
    pub desired_obj: Option<Value>,
    /// The object as it is observed.
    pub observed_obj: Option<Value>,
    /// The status in each cluster.
    pub status_items: Option<Vec<AggregatedStatusItem>>,
    /// How many replicas it shall have.
    pub input_replicas: i64,
    /// What is expected, by the name of the result.
    pub output: Map<String, Value>,
    /// Fields that no case has: what is spelled wrongly is looked at by nobody.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Why a document is not a case.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A field is not what it is to be.
    #[error("{field}: {problem}")]
    Field {
        /// Which.
        field: String,
        /// In which way.
        problem: String,
    },
    /// It asks for nothing that there is.
    #[error("operation: {0}")]
    Operation(#[from] UnknownOperationError),
    /// There is nothing to ask about.
    #[error("specify {0}")]
    Missing(&'static str),
    /// It does not say which object is meant.
    #[error("specify either desiredObj or observedObj: {0} takes one object")]
    Both(Operation),
}

/// What became of a case that passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CasePass {
    /// The results that the case does not look at.
    pub unchecked: Vec<&'static str>,
}

/// Why a case does not pass.
#[derive(Debug, thiserror::Error)]
pub enum CaseFailure {
    /// Nothing can be asked.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// Whoever was asked failed.
    #[error(transparent)]
    Interpret(#[from] InterpretError),
    /// Nobody answers.
    #[error("nothing answers {0} for this object")]
    NotAnswered(Operation),
    /// The answer is not the expected one.
    #[error("{}", list(.0))]
    Differs(Vec<Difference>),
    /// No answer has such a part.
    #[error("output.{0}: not a result of {1}")]
    NoResult(String, Operation),
}

// === impl InterpretationCase ===

impl InterpretationCase {
    /// Reads a case.
    ///
    /// # Errors
    ///
    /// When a field is not what it is to be, or the operation is not one.
    pub fn read(document: &Value) -> Result<Self, CaseError> {
        let case: Self = serde_path_to_error::deserialize(document).map_err(|error| CaseError::Field {
            field: error.path().to_string(),
            problem: error.into_inner().to_string(),
        })?;
        case.operation()?;
        Ok(case)
    }

    /// What is asked.
    ///
    /// # Errors
    ///
    /// When there is no such operation.
    pub fn operation(&self) -> Result<Operation, UnknownOperationError> {
        self.operation.parse()
    }

    /// What is asked about which objects.
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

    /// Asks, and compares.
    ///
    /// # Errors
    ///
    /// Why it does not pass.
    pub async fn run(&self, interpreter: &ResourceInterpreter) -> Result<CasePass, CaseFailure> {
        let question = self.question()?;
        let operation = question.operation();
        let answer = interpreter.ask(question).await?;
        let answer = answer.ok_or(CaseFailure::NotAnswered(operation))?;
        let results = CaseResult::of(operation, &answer);
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
    use crate::{Answer, Interpreter, InterpreterSource, interpreter::Interpreting};

    /// Answers replicas with what it finds, health with `true`, and nothing else.
    struct Known;

    impl Interpreter for Known {
        fn name(&self) -> String {
            "known".to_owned()
        }

        fn interpret<'a>(&'a self, question: Question<'a>) -> Interpreting<'a> {
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

    async fn said(document: Value) -> String {
        let interpreter = ResourceInterpreter::new(vec![Arc::new(Known)]);
        let case = match InterpretationCase::read(&document) {
            Ok(case) => case,
            Err(error) => return error.to_string(),
        };
        match case.run(&interpreter).await {
            Ok(pass) => format!("passes but for {:?}", pass.unchecked),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn a_case_passes_or_says_why_not() {
        let object = json!({"kind": "Pod", "replicas": 3});
        for (document, expected) in [
            (
                json!({"operation": "interpretreplica", "desiredObj": object, "output": {"replica": 3}}),
                r#"passes but for ["requires"]"#,
            ),
            (
                json!({"operation": "InterpretHealth", "observedObj": object}),
                r#"passes but for ["healthy"]"#,
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
                "nothing answers InterpretStatus for this object",
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
            assert_eq!(said(document).await, expected);
        }
        assert!(
            said(json!({"operation": "Prune"}))
                .await
                .starts_with("operation: \"Prune\" is not an operation")
        );
    }

    #[test]
    fn what_is_spelled_wrongly_is_known() {
        let case = InterpretationCase::read(&json!({"operation": "Retain", "outputs": {}})).unwrap();
        assert!(case.unknown.contains_key("outputs"));
    }
}
