//! Compiles CEL expressions.

use super::{
    expression::CelExpression,
    program::{CelProgram, CelPurpose, CompiledValidation},
};
use crate::{
    PolicyProblem,
    api::{CelOverride, CelValidationRule, CelVariable, MatchCondition},
    engine::{RuleEngine, RuleProgram, RuleSource},
    problem::PolicyProblems,
};

/// Compiles rules in CEL, with the functions of Kubernetes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CelEngine;

impl RuleEngine for CelEngine {
    fn compile(&self, source: RuleSource<'_>) -> Result<Box<dyn RuleProgram>, Vec<PolicyProblem>> {
        let mut problems = PolicyProblems::default();
        let program = match source {
            RuleSource::CelConditions(conditions) => Some(compile_conditions(conditions, &mut problems)),
            RuleSource::CelValidation(rule) => Some(compile_validation(rule, &mut problems)),
            RuleSource::CelOverride(rule) => compile_override(rule, &mut problems),
            RuleSource::CueOverride(_) | RuleSource::CueValidation(_) | RuleSource::CueProcessing(_) => {
                problems.note("", "is CUE, not CEL");
                None
            }
        };
        match (program, problems.into_problems()) {
            (Some(program), problems) if problems.is_empty() => Ok(Box::new(program)),
            (_, problems) => Err(problems),
        }
    }
}

fn parse(
    name: &str,
    text: &str,
    variables: &[String],
    problems: &mut PolicyProblems,
) -> Option<CelExpression> {
    CelExpression::parse(text, variables)
        .map_err(|of_expression| problems.extend(name, of_expression))
        .ok()
}

/// Compiles the variables, each of which can use earlier ones, and returns all their names.
fn compile_variables(
    variables: &[CelVariable],
    problems: &mut PolicyProblems,
) -> (Vec<(String, CelExpression)>, Vec<String>) {
    let (mut compiled, mut names) = (Vec::new(), Vec::new());
    for (index, variable) in variables.iter().enumerate() {
        let mut characters = variable.name.chars();
        let begins = characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        if !begins || !characters.all(|character| character.is_ascii_alphanumeric() || character == '_') {
            problems.note(format!("variables[{index}].name"), "must be an identifier of CEL");
        } else if names.contains(&variable.name) {
            problems.note(
                format!("variables[{index}].name"),
                format!("duplicate {:?}", variable.name),
            );
        }
        let field = format!("variables[{index}].expression");
        if let Some(expression) = parse(&field, &variable.expression, &names, problems) {
            compiled.push((variable.name.clone(), expression));
        }
        names.push(variable.name.clone());
    }
    (compiled, names)
}

fn compile_conditions(conditions: &[MatchCondition], problems: &mut PolicyProblems) -> CelProgram {
    let mut compiled = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let field = format!("[{index}].expression");
        if let Some(expression) = parse(&field, &condition.expression, &[], problems) {
            compiled.push((condition.name.clone(), expression));
        }
    }
    CelProgram {
        variables: Vec::new(),
        purpose: CelPurpose::Conditions(compiled),
    }
}

fn compile_validation(rule: &CelValidationRule, problems: &mut PolicyProblems) -> CelProgram {
    let (variables, names) = compile_variables(&rule.variables, problems);
    let mut compiled = Vec::new();
    for (index, validation) in rule.validations.iter().enumerate() {
        let field = format!("validations[{index}].expression");
        let expression = parse(&field, &validation.expression, &names, problems);
        let message_expression = validation.message_expression.as_ref().and_then(|text| {
            let field = format!("validations[{index}].messageExpression");
            parse(&field, text, &names, problems)
        });
        compiled.extend(expression.map(|expression| CompiledValidation {
            expression,
            message: validation.message.clone(),
            message_expression,
        }));
    }
    CelProgram {
        variables,
        purpose: CelPurpose::Validations(compiled),
    }
}

fn compile_override(rule: &CelOverride, problems: &mut PolicyProblems) -> Option<CelProgram> {
    let (variables, names) = compile_variables(&rule.variables, problems);
    let expression = parse("expression", &rule.expression, &names, problems)?;
    Some(CelProgram {
        variables,
        purpose: CelPurpose::Override(expression),
    })
}
