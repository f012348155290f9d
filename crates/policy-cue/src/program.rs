//! Programs: compiled once, run often.

use serde_json::Value;

use crate::{
    budget::CueBudget,
    error::EvaluationError,
    evaluate,
    position::SourcePosition,
    problem::CueProblems,
    resolver::resolve,
    syntax::{Expression, ExpressionKind, parse},
};

/// A program of the subset, of which all names are known.
#[derive(Debug)]
pub struct CueProgram {
    root: Expression,
}

/// What a program is run with: names and JSON, which is read where it is.
#[derive(Clone, Debug, Default)]
pub struct CueInputs<'a> {
    values: Vec<(&'a str, &'a Value)>,
}

// === impl CueInputs ===

impl<'a> CueInputs<'a> {
    /// No inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These, and one that unifies with the program's field of that name.
    #[must_use]
    pub fn with_input(mut self, name: &'a str, value: &'a Value) -> Self {
        self.values.push((name, value));
        self
    }
}

// === impl CueProgram ===

impl CueProgram {
    /// Reads a program.
    ///
    /// # Errors
    /// All that is not CUE, not in the subset, or not declared, each with its place. A source that is not CUE at some place is not looked
    /// through for names that are not declared.
    pub fn compile(source: &str) -> Result<Self, CueProblems> {
        let mut file = parse(source)?;
        resolve(&mut file)?;
        let position = SourcePosition { line: 1, column: 1 };
        Ok(Self {
            root: Expression::new(position, ExpressionKind::Struct(file.body)),
        })
    }

    /// The JSON of the program's field `output`, with these inputs; `None` if there is no such field.
    ///
    /// # Errors
    /// If the output is incomplete, if anything in the program is an error, or if the budget is used up.
    pub fn evaluate(
        &self,
        inputs: &CueInputs<'_>,
        output: &str,
        budget: &CueBudget<'_>,
    ) -> Result<Option<Value>, EvaluationError> {
        evaluate::evaluate(&self.root, &inputs.values, output, budget)
    }
}
