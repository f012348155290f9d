//! Engines that compile and evaluate programs of rules.

use std::{fmt, sync::Arc};

use serde_json::Value;
use thiserror::Error;

use crate::{
    EvaluationGate, PolicyProblem, ProgramPosition,
    api::{CelOverride, CelValidationRule, MatchCondition},
    evaluation::OpenGate,
};

/// The source of a program.
#[derive(Clone, Copy, Debug)]
pub enum RuleSource<'a> {
    /// CUE with a field `patches`, a list of operations.
    CueOverride(&'a str),
    /// CUE with a field `validate`, which has `valid` and `reason`.
    CueValidation(&'a str),
    /// CUE with a field `processing`, which describes a request.
    CueProcessing(&'a str),
    /// CEL that yields a list of operations.
    CelOverride(&'a CelOverride),
    /// CEL that yields the equivalent of CUE's `validate`.
    CelValidation(&'a CelValidationRule),
    /// CEL that yields a boolean.
    CelConditions(&'a [MatchCondition]),
}

/// A compiler of programs in one language.
pub trait RuleEngine: Send + Sync {
    /// Compiles a program and reports all problems that can be detected without an object.
    ///
    /// # Errors
    ///
    /// All problems, each with its position; for CEL with the field of the expression, for example
    /// `validations[0].expression`.
    fn compile(&self, source: RuleSource<'_>) -> Result<Box<dyn RuleProgram>, Vec<PolicyProblem>>;
}

/// A compiled program. Several threads can evaluate it concurrently.
pub trait RuleProgram: Send + Sync + fmt::Debug {
    /// Evaluates the program with named inputs; `None` if it lacks the expected output. Undeclared inputs are
    /// ignored.
    ///
    /// # Errors
    ///
    /// If it fails, or exceeds the budget.
    fn evaluate(
        &self,
        inputs: &[(&str, &Value)],
        budget: &EvaluationBudget<'_>,
    ) -> Result<Option<Value>, ProgramError>;
}

/// The budget of an evaluation, and the gate of its policies.
#[derive(Clone, Copy)]
pub struct EvaluationBudget<'a> {
    /// The maximum number of steps, as counted by the engine.
    pub steps: u64,
    /// The maximum nesting of values and calls.
    pub depth: u32,
    /// The approximate maximum size of created values in bytes.
    pub bytes: usize,
    /// Reports whether the deadline of the whole request has passed.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// The gate that admits policies to the evaluation; by default all.
    pub gate: &'a dyn EvaluationGate,
}

/// Why a program has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{message}", .position.map(|position| format!("{position}: ")).unwrap_or_default())]
pub struct ProgramError {
    /// Position in the program, if known.
    pub position: Option<ProgramPosition>,
    /// Why the program has no result.
    pub message: String,
}

/// The available engines.
#[derive(Clone, Default)]
pub struct Engines {
    /// The engine for CUE; `None` without the feature `cue`.
    pub cue: Option<Arc<dyn RuleEngine>>,
    /// The engine for CEL; `None` without the feature `cel`.
    pub cel: Option<Arc<dyn RuleEngine>>,
}

impl Default for EvaluationBudget<'_> {
    fn default() -> Self {
        Self {
            steps: 1_000_000,
            depth: 100,
            bytes: 16 << 20,
            is_over: &|| false,
            gate: &OpenGate,
        }
    }
}

impl fmt::Debug for EvaluationBudget<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EvaluationBudget")
            .field("steps", &self.steps)
            .field("depth", &self.depth)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl ProgramError {
    /// Creates an error without a position.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            position: None,
            message: message.into(),
        }
    }
}

impl Engines {
    /// Returns the built-in engines.
    pub fn built_in() -> Self {
        Self {
            #[cfg(feature = "cel")]
            cel: Some(Arc::new(crate::cel::CelEngine)),
            #[cfg(not(feature = "cel"))]
            cel: None,
            #[cfg(feature = "cue")]
            cue: Some(Arc::new(crate::cue::CueEngine)),
            #[cfg(not(feature = "cue"))]
            cue: None,
        }
    }

    /// Compiles a program.
    ///
    /// # Errors
    ///
    /// All problems; also if there is no engine for its language.
    pub(crate) fn compile(&self, source: RuleSource<'_>) -> Result<Box<dyn RuleProgram>, Vec<PolicyProblem>> {
        let (engine, language) = match source {
            RuleSource::CueOverride(_) | RuleSource::CueValidation(_) | RuleSource::CueProcessing(_) => {
                (&self.cue, "CUE")
            }
            _ => (&self.cel, "CEL"),
        };
        match engine {
            Some(engine) => engine.compile(source),
            None => {
                let message = format!("this program was built without {language}");
                Err(vec![PolicyProblem::new("", message)])
            }
        }
    }
}

impl fmt::Debug for Engines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Engines")
            .field("cue", &self.cue.is_some())
            .field("cel", &self.cel.is_some())
            .finish()
    }
}
