//! CEL expressions over properties, as in OLM's constraints (`operator-framework/api`, `pkg/constraints`).

use std::{sync::Arc, thread};

use kube_cel::cel::{Context, ExecutionError, Program, Value as CelValue, to_value};
use serde_json::Value;
use thiserror::Error;

use crate::upgrade::Version;

/// The maximum length of an expression in bytes; published ones have about a hundred.
const LENGTH: usize = 2048;

/// The maximum number of operators, dots and brackets: the parser recurses into each.
const SIGNS: usize = 256;

/// The maximum nesting of comprehensions: each level iterates over every property of a cluster.
const LOOPS: usize = 2;

/// The macros that iterate over a list.
const MACROS: [&str; 5] = ["all", "exists", "exists_one", "filter", "map"];

/// Stack size for the longest expression: an unoptimised level of the parser takes some 100 KiB.
const STACK: usize = 64 << 20;

/// A CEL expression that compiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CelRule(String);

/// Why a CEL expression is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CelError {
    /// The expression is empty.
    #[error("The CEL expression is missing")]
    Missing,
    /// The expression does not compile.
    #[error("Invalid CEL expression: {0}")]
    Invalid(String),
    /// The expression compiles, but does not yield a boolean.
    #[error("the CEL expression cannot be evaluated: {0}")]
    Undecided(String),
}

impl CelRule {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// If it is invalid or too large.
    pub fn parse(text: &str) -> Result<Self, CelError> {
        if text.trim().is_empty() {
            return Err(CelError::Missing);
        }
        if text.len() > LENGTH || count_signs(text) > SIGNS {
            let message = format!(
                "it is longer than {LENGTH} bytes, or has more than {SIGNS} operators, dots and brackets"
            );
            return Err(CelError::Invalid(message));
        }
        if loop_depth(text) > LOOPS {
            let message = format!("its comprehensions are nested deeper than {LOOPS} levels");
            return Err(CelError::Invalid(message));
        }
        on_large_stack(|| compile(text).map(drop))?;
        Ok(Self(text.to_owned()))
    }

    /// The expression, as written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Evaluates the expression over `properties`, each with a `type` and a `value`.
    ///
    /// # Errors
    ///
    /// If evaluation fails, for example on a missing field, or does not yield a boolean.
    pub fn holds(&self, properties: &[Value]) -> Result<bool, CelError> {
        on_large_stack(|| {
            let undecided = |error: &dyn std::fmt::Display| CelError::Undecided(error.to_string());
            let program = compile(&self.0)?;
            let mut context = Context::default();
            let properties = to_value(properties).map_err(|error| undecided(&error))?;
            context.add_variable_from_value("properties", properties);
            context.add_function("semver_compare", semver_compare);
            match program.execute(&context) {
                Ok(CelValue::Bool(holds)) => Ok(holds),
                Ok(other) => Err(undecided(&format!("it yields {other:?}, not true or false"))),
                Err(error) => Err(undecided(&error)),
            }
        })
    }
}

/// Runs the recursive `work` on a stack that is large enough; the libraries may also panic on unknown input.
fn on_large_stack<T: Send>(work: impl FnOnce() -> Result<T, CelError> + Send) -> Result<T, CelError> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| CelError::Undecided(error.to_string()))?;
        worker
            .join()
            .unwrap_or_else(|_| Err(CelError::Invalid("the parser failed".to_owned())))
    })
}

fn compile(text: &str) -> Result<Program, CelError> {
    Program::compile(text).map_err(|error| {
        let message = error.to_string();
        CelError::Invalid(message.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}

/// Compares two versions: -1, 0 or 1, like OLM's function of this name.
fn semver_compare(first: Arc<String>, second: Arc<String>) -> Result<i64, ExecutionError> {
    match (Version::parse(&first), Version::parse(&second)) {
        (Some(first), Some(second)) => Ok(first.cmp(&second) as i64),
        _ => Err(ExecutionError::function_error(
            "semver_compare",
            "no such version",
        )),
    }
}

/// Returns the nesting depth of comprehensions, or their number if string literals cannot be delimited.
fn loop_depth(text: &str) -> usize {
    let is_loop = |before: &str| {
        let start = before
            .rfind(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .map_or(0, |place| place + 1);
        MACROS.contains(&&before[start..])
    };
    let is_hidden = ["\\", "\"\"\"", "'''", "//"]
        .iter()
        .any(|sign| text.contains(sign));
    let (mut quote, mut open, mut deepest) = (None, Vec::new(), 0);
    for (place, character) in text.char_indices() {
        match character {
            '\'' | '"' if !is_hidden && quote.is_none() => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            _ if quote.is_some() => {}
            '(' => {
                open.push(is_loop(text[..place].trim_end()));
                deepest = deepest.max(open.iter().filter(|is_loop| **is_loop).count());
            }
            ')' if !is_hidden => drop(open.pop()),
            _ => {}
        }
    }
    deepest
}

/// Counts the characters that can nest one part of an expression in another.
fn count_signs(text: &str) -> usize {
    text.chars()
        .filter(|character| character.is_ascii_punctuation() && !matches!(character, '\'' | '"' | '_'))
        .count()
}
