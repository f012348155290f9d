//! What evaluates programs of rules.

use std::{fmt, sync::Arc};

use serde_json::Value;
use thiserror::Error;

use crate::{
    EvaluationGate, PolicyProblem, ProgramPosition,
    api::{CelOverride, CelValidationRule, MatchCondition},
    evaluation::OpenGate,
};

/// A program as it is written.
#[derive(Clone, Copy, Debug)]
pub enum RuleSource<'a> {
    /// CUE whose field `patches` is a list of operations.
    CueOverride(&'a str),
    /// CUE whose field `validate` has `valid` and `reason`.
    CueValidation(&'a str),
    /// CUE whose field `processing` describes a request.
    CueProcessing(&'a str),
    /// CEL that gives a list of operations.
    CelOverride(&'a CelOverride),
    /// CEL that gives what `validate` is in CUE.
    CelValidation(&'a CelValidationRule),
    /// CEL that gives true or false.
    CelConditions(&'a [MatchCondition]),
}

/// Compiles programs of one language.
pub trait RuleEngine: Send + Sync {
    /// Compiles a program. Whatever is wrong with it and can be known without an object is told here.
    ///
    /// # Errors
    ///
    /// With all that is wrong, each with its place; of CEL with the field of the expression, for example `validations[0].expression`.
    fn compile(&self, source: RuleSource<'_>) -> Result<Box<dyn RuleProgram>, Vec<PolicyProblem>>;
}

/// A compiled program. It may be evaluated from several threads at once.
pub trait RuleProgram: Send + Sync + fmt::Debug {
    /// What it gives for these inputs, each with its name; `None` where it does not have what is asked for. Inputs that it does not
    /// know are not looked at.
    ///
    /// # Errors
    ///
    /// When it fails, or exceeds the budget.
    fn evaluate(
        &self,
        inputs: &[(&str, &Value)],
        budget: &EvaluationBudget<'_>,
    ) -> Result<Option<Value>, ProgramError>;
}

/// What an evaluation may take, and which policies are asked in it.
#[derive(Clone, Copy)]
pub struct EvaluationBudget<'a> {
    /// The most steps, as the engine counts them.
    pub steps: u64,
    /// How deep values and calls may be nested.
    pub depth: u32,
    /// The most bytes of values that are made, about.
    pub bytes: usize,
    /// Whether the time for the whole request has run out.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// Which policies are asked: all, if nothing else is said.
    pub gate: &'a dyn EvaluationGate,
}

/// Why a program gives nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{message}", .position.map(|position| format!("{position}: ")).unwrap_or_default())]
pub struct ProgramError {
    /// Where in the program.
    pub position: Option<ProgramPosition>,
    /// What went wrong.
    pub message: String,
}

/// The engines that there are.
#[derive(Clone, Default)]
pub struct Engines {
    /// For CUE.
    pub cue: Option<Arc<dyn RuleEngine>>,
    /// For CEL.
    pub cel: Option<Arc<dyn RuleEngine>>,
}

// === impl EvaluationBudget ===

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

// === impl ProgramError ===

impl ProgramError {
    /// That something went wrong, at no place in particular.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            position: None,
            message: message.into(),
        }
    }
}

// === impl Engines ===

impl Engines {
    /// Those that are built in.
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
    /// With all that is wrong; that there is no engine for its language.
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
