//! Evaluates compiled CEL expressions.

use std::sync::LazyLock;

use kube_cel::{
    KubeCelExt,
    cel::{Context, Value as CelValue},
};
use serde_json::{Map, Value, json};

use super::{
    cost,
    expression::{CelExpression, VARIABLES},
    stack::run_with_stack,
    values::{map, to_cel, to_json},
};
use crate::engine::{EvaluationBudget, ProgramError, RuleProgram};

/// The maximum length of a message in characters, as in API servers.
const LONGEST_MESSAGE: usize = 5 << 10;

/// All functions.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// Compiled expressions, by purpose.
#[derive(Debug)]
pub(super) struct CelProgram {
    pub(super) variables: Vec<(String, CelExpression)>,
    pub(super) purpose: CelPurpose,
}

#[derive(Debug)]
pub(super) enum CelPurpose {
    /// Named conditions, all of which must be true.
    Conditions(Vec<(String, CelExpression)>),
    /// Validations, each with a message.
    Validations(Vec<CompiledValidation>),
    /// An expression that yields operations.
    Override(CelExpression),
}

#[derive(Debug)]
pub(super) struct CompiledValidation {
    pub(super) expression: CelExpression,
    pub(super) message: Option<String>,
    pub(super) message_expression: Option<CelExpression>,
}

/// The variables of one evaluation.
struct Known<'a> {
    context: Context<'a>,
    inputs: Vec<(&'a str, &'a Value)>,
    budget: &'a EvaluationBudget<'a>,
    variables: Value,
    /// Variables that failed, with the reasons.
    failed: Vec<(String, ProgramError)>,
}

impl RuleProgram for CelProgram {
    fn evaluate(
        &self,
        inputs: &[(&str, &Value)],
        budget: &EvaluationBudget<'_>,
    ) -> Result<Option<Value>, ProgramError> {
        let mut known = Known::new(inputs, budget);
        for (name, expression) in &self.variables {
            known.add_variable(name, expression);
        }
        match &self.purpose {
            CelPurpose::Conditions(conditions) => {
                let mut error = None;
                for (name, condition) in conditions {
                    match known.truth(condition) {
                        // As in API servers, a false condition takes precedence over a failing one.
                        Ok(false) => return Ok(Some(false.into())),
                        Ok(true) => {}
                        Err(failure) => {
                            error.get_or_insert(ProgramError::new(format!("{name}: {failure}")));
                        }
                    }
                }
                error.map_or(Ok(Some(true.into())), Err)
            }
            CelPurpose::Validations(validations) => {
                let mut reasons = Vec::new();
                for (index, validation) in validations.iter().enumerate() {
                    let is_valid = known
                        .truth(&validation.expression)
                        .map_err(|error| ProgramError::new(format!("validations[{index}]: {error}")))?;
                    if !is_valid {
                        reasons.push(known.message(validation));
                    }
                }
                Ok(Some(
                    json!({"valid": reasons.is_empty(), "reason": reasons.join("; ")}),
                ))
            }
            CelPurpose::Override(expression) => {
                let value = known.value(expression)?;
                to_json(&value).map(Some).map_err(ProgramError::new)
            }
        }
    }
}

impl<'a> Known<'a> {
    fn new(inputs: &[(&'a str, &'a Value)], budget: &'a EvaluationBudget<'a>) -> Self {
        let mut context = FUNCTIONS.new_inner_scope();
        for (name, value) in inputs {
            context.add_variable_from_value(*name, to_cel(value));
        }
        Self {
            context,
            inputs: inputs.to_vec(),
            budget,
            variables: Value::Object(Map::new()),
            failed: Vec::new(),
        }
    }

    fn value(&self, expression: &CelExpression) -> Result<CelValue, ProgramError> {
        if (self.budget.is_over)() {
            return Err(ProgramError::new("the time for the request has run out"));
        }
        let mut inputs = self.inputs.clone();
        inputs.push((VARIABLES, &self.variables));
        let value = run_with_stack(expression.depth, || {
            cost::check(&expression.root, &inputs, self.budget)?;
            Ok(CelValue::resolve(&expression.root, &self.context))
        });
        match value.map_err(ProgramError::new)? {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                let error = error.to_string();
                let because = self.failed.iter().find(|(name, _)| error.contains(name.as_str()));
                Err(ProgramError::new(match because {
                    Some((name, because)) => format!("variables.{name}: {because}"),
                    None => error,
                }))
            }
            Err(error) => Err(error),
        }
    }

    fn truth(&self, expression: &CelExpression) -> Result<bool, ProgramError> {
        match self.value(expression)? {
            CelValue::Bool(truth) => Ok(truth),
            other => {
                let message = format!("is {}, not true or false", other.type_of());
                Err(ProgramError::new(message))
            }
        }
    }

    /// Adds a variable for later expressions. The failure of a variable is reported only by expressions that
    /// use it.
    fn add_variable(&mut self, name: &str, expression: &CelExpression) {
        let value = self.value(expression).and_then(|value| {
            let json = to_json(&value).map_err(ProgramError::new)?;
            Ok((value, json))
        });
        match value {
            Ok((_, json)) => self.variables[name] = json,
            Err(error) => self.failed.push((name.to_owned(), error)),
        }
        let entries = self.variables.as_object().into_iter().flatten();
        let variables = map(entries.map(|(name, value)| (name.clone(), to_cel(value))));
        self.context.add_variable_from_value(VARIABLES, variables);
    }

    /// The message of a failed validation.
    fn message(&self, validation: &CompiledValidation) -> String {
        let computed =
            validation
                .message_expression
                .as_ref()
                .and_then(|expression| match self.value(expression) {
                    Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
                    _ => None,
                });
        let is_usable =
            |text: &String| !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
        computed
            .filter(is_usable)
            .or_else(|| validation.message.clone())
            .unwrap_or_else(|| format!("failed expression: {}", validation.expression.text))
    }
}
