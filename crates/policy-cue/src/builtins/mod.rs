//! The built-in functions.

mod length;
mod lists;
mod maths;
mod strconv;
mod strings;

use std::fmt;

use crate::{
    evaluate::{CueValue, Evaluated, Evaluation, EvaluationFailure, FailureMessage, SharedFailure},
    kind::KindSet,
    number::{CueNumber, Decimal},
};

/// The packages that programs can import.
pub(crate) const PACKAGES: &[&str] = &["list", "math", "strconv", "strings"];

/// The implementation of a function.
type Implementation = for<'a, 'b> fn(&mut Arguments<'_, 'a, 'b>) -> Evaluated<CueValue<'a>>;

/// A function, with its parameters and implementation.
pub(crate) struct BuiltinFunction {
    package: &'static str,
    name: &'static str,
    pub(crate) parameters: &'static [KindSet],
    result: KindSet,
    implementation: Implementation,
}

/// The arguments of a call; their kinds match the parameters.
pub(crate) struct Arguments<'e, 'a, 'b> {
    pub(crate) evaluation: &'e mut Evaluation<'a, 'b>,
    pub(crate) values: &'e [CueValue<'a>],
}

/// Finds a package by path.
pub(crate) fn package(path: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|package| **package == path).copied()
}

/// Lists all functions.
fn functions() -> impl Iterator<Item = &'static BuiltinFunction> {
    [
        length::FUNCTIONS,
        lists::FUNCTIONS,
        maths::FUNCTIONS,
        strconv::FUNCTIONS,
        strings::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// Finds a function by name; CUE's own functions have no package.
pub(crate) fn function(package: &str, name: &str) -> Option<&'static BuiltinFunction> {
    functions().find(|function| function.package == package && function.name == name)
}

/// Lists the names of a package's functions.
pub(crate) fn functions_of(package: &str) -> Vec<&'static str> {
    let found = functions().filter(|function| function.package == package);
    found.map(|function| function.name).collect()
}

impl BuiltinFunction {
    const fn new(
        package: &'static str,
        name: &'static str,
        parameters: &'static [KindSet],
        result: KindSet,
        implementation: Implementation,
    ) -> Self {
        Self {
            package,
            name,
            parameters,
            result,
            implementation,
        }
    }

    /// Reports whether this function returns a boolean: CUE treats a call without its first argument as a
    /// constraint.
    pub(crate) fn is_predicate(&self) -> bool {
        self.result == KindSet::BOOL
    }

    pub(crate) fn call<'a>(
        &'static self,
        evaluation: &mut Evaluation<'a, '_>,
        values: &[CueValue<'a>],
    ) -> Evaluated<CueValue<'a>> {
        for (parameter, value) in self.parameters.iter().zip(values) {
            let kind = evaluation.kind(value);
            if matches!(value, CueValue::Kind(_)) || !parameter.contains(kind) {
                let failure = evaluation.wrong_kind(value, *parameter);
                return Err(self.explain(failure));
            }
        }
        let position_before = evaluation.position();
        let mut arguments = Arguments { evaluation, values };
        (self.implementation)(&mut arguments).map_err(|failure| {
            if failure.position == position_before && !failure.is_final() {
                self.explain(failure)
            } else {
                failure
            }
        })
    }

    fn explain(&'static self, failure: SharedFailure) -> SharedFailure {
        let (severity, position) = (failure.severity, failure.position);
        EvaluationFailure::new(severity, position, FailureMessage::Argument(self, failure))
    }
}

impl fmt::Display for BuiltinFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.package.is_empty() {
            write!(formatter, "{}.", self.package)?;
        }
        formatter.write_str(self.name)
    }
}

impl fmt::Debug for BuiltinFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl<'a> Arguments<'_, 'a, '_> {
    fn error(&self, message: impl Into<FailureMessage>) -> SharedFailure {
        self.evaluation.error(message)
    }

    fn text(&self, index: usize) -> Evaluated<&str> {
        let text = self.values.get(index).and_then(CueValue::as_text);
        text.ok_or_else(|| self.error("a string is missing"))
    }

    fn number(&self, index: usize) -> Evaluated<&CueNumber> {
        let number = self.values.get(index).and_then(CueValue::as_number);
        number.ok_or_else(|| self.error("a number is missing"))
    }

    fn integer(&self, index: usize) -> Evaluated<i64> {
        let number = self.number(index)?;
        let integer = number.decimal.to_i64();
        integer.ok_or_else(|| self.error(format!("{number} is not an integer of 64 bits")))
    }

    /// A non-negative integer.
    fn count(&self, index: usize) -> Evaluated<usize> {
        let number = self.integer(index)?;
        usize::try_from(number).map_err(|_| self.error(format!("{number} is negative")))
    }

    fn list(&mut self, index: usize) -> Evaluated<Vec<crate::evaluate::ValuePlace<'a>>> {
        let list = match self.values.get(index) {
            Some(value) => self.evaluation.list(value)?,
            None => None,
        };
        list.ok_or_else(|| self.error("a list is missing"))
    }

    fn new_text(&mut self, text: &str) -> Evaluated<CueValue<'a>> {
        self.evaluation.new_text(text)
    }
}

/// Converts a decimal result: an `int` if it has no fraction.
fn detected(decimal: Decimal) -> CueNumber {
    CueNumber {
        is_integer: decimal.is_whole(),
        decimal,
    }
}
