//! Compiled programs.

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

/// A program in the subset, with resolved names.
#[derive(Debug)]
pub struct CueProgram {
    root: Expression,
}

/// The inputs of an evaluation: borrowed JSON values by name.
#[derive(Clone, Debug, Default)]
pub struct CueInputs<'a> {
    values: Vec<(&'a str, &'a Value)>,
}

impl<'a> CueInputs<'a> {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input, which is unified with the program's field of that name.
    #[must_use]
    pub fn with_input(mut self, name: &'a str, value: &'a Value) -> Self {
        self.values.push((name, value));
        self
    }
}

impl CueProgram {
    /// Compiles a program.
    ///
    /// # Errors
    /// All constructs that are not valid CUE, not in the subset, or not declared, with their positions. After
    /// a syntax error, undeclared names are not reported.
    pub fn compile(source: &str) -> Result<Self, CueProblems> {
        let mut file = parse(source)?;
        resolve(&mut file)?;
        let position = SourcePosition { line: 1, column: 1 };
        Ok(Self {
            root: Expression::new(position, ExpressionKind::Struct(file.body)),
        })
    }

    /// Evaluates the program's field `output` with these inputs and returns its JSON; `None` if there is no
    /// such field.
    ///
    /// # Errors
    /// If the output is incomplete, if anything in the program is an error, or if the budget is exhausted.
    pub fn evaluate(
        &self,
        inputs: &CueInputs<'_>,
        output: &str,
        budget: &CueBudget<'_>,
    ) -> Result<Option<Value>, EvaluationError> {
        evaluate::evaluate(&self.root, &inputs.values, output, budget)
    }
}
