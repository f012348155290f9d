//! Rules in policy CUE, a declared subset of CUE v0.4.3.
//!
//! Programs get `object`; if they declare them by an attribute, as in `request: _ @tag(request)`, also
//! `request` and `namespaceObject`; and in updates `oldObject`, which validations get without a declaration.
//! Rendered templates get all of these in `data`.

use policy_cue::{CueBudget, CueInputs, CueProgram, SourcePosition};
use serde_json::Value;

use crate::{
    PolicyProblem, ProgramPosition,
    engine::{EvaluationBudget, ProgramError, RuleEngine, RuleProgram, RuleSource},
};

/// Compiles rules in policy CUE.
#[derive(Clone, Copy, Debug, Default)]
pub struct CueEngine;

/// A program, and the name of its output field.
#[derive(Debug)]
struct CompiledCue {
    program: CueProgram,
    output: &'static str,
}

impl RuleEngine for CueEngine {
    fn compile(&self, source: RuleSource<'_>) -> Result<Box<dyn RuleProgram>, Vec<PolicyProblem>> {
        let (text, output) = match source {
            RuleSource::CueOverride(text) => (text, "patches"),
            RuleSource::CueValidation(text) => (text, "validate"),
            RuleSource::CueProcessing(text) => (text, "processing"),
            _ => return Err(vec![PolicyProblem::new("", "is CEL, not CUE")]),
        };
        let problem = |problem: policy_cue::CueProblem| PolicyProblem {
            position: Some(position(problem.position)),
            ..PolicyProblem::new("", format!("{}: {}", problem.construct, problem.message))
        };
        let program = CueProgram::compile(text)
            .map_err(|problems| problems.into_iter().map(problem).collect::<Vec<_>>())?;
        Ok(Box::new(CompiledCue { program, output }))
    }
}

fn position(position: SourcePosition) -> ProgramPosition {
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    ProgramPosition {
        line: number(position.line),
        column: number(position.column),
    }
}

impl RuleProgram for CompiledCue {
    fn evaluate(
        &self,
        inputs: &[(&str, &Value)],
        budget: &EvaluationBudget<'_>,
    ) -> Result<Option<Value>, ProgramError> {
        let inputs = inputs.iter().fold(CueInputs::new(), |inputs, (name, value)| {
            inputs.with_input(name, value)
        });
        let budget = CueBudget {
            steps: budget.steps,
            depth: budget.depth,
            bytes: budget.bytes,
            has_run_out: budget.is_over,
        };
        let given = self.program.evaluate(&inputs, self.output, &budget);
        given.map_err(|error| {
            let whole = error.to_string();
            // The error has its own form for the position in front of the message.
            let message = whole
                .split_once(": ")
                .map_or(whole.as_str(), |(_, message)| message);
            ProgramError {
                position: Some(position(error.position())),
                message: message.to_owned(),
            }
        })
    }
}

#[cfg(test)]
mod tests;
