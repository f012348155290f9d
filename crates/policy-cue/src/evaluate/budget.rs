//! The consumed budget of an evaluation.

use crate::{
    budget::CueBudget,
    evaluate::failure::{Evaluated, EvaluationFailure, Severity},
    position::SourcePosition,
};

/// The number of steps between checks of the deadline.
const BETWEEN_LOOKS: u64 = 256;

pub(super) struct Spending<'b> {
    steps: u64,
    bytes: usize,
    depth: u32,
    limits: &'b CueBudget<'b>,
}

impl<'b> Spending<'b> {
    pub(super) fn new(limits: &'b CueBudget<'b>) -> Self {
        Self {
            steps: 0,
            bytes: 0,
            depth: 0,
            limits,
        }
    }

    pub(super) fn step(&mut self, position: SourcePosition) -> Evaluated<()> {
        self.steps += 1;
        if self.steps > self.limits.steps {
            return Err(exhausted(
                position,
                "the program took too many steps; make it do less",
            ));
        }
        if self.steps.is_multiple_of(BETWEEN_LOOKS) && (self.limits.has_run_out)() {
            return Err(exhausted(position, "the program took too long; make it do less"));
        }
        Ok(())
    }

    /// Accounts for bytes that are about to be allocated.
    pub(super) fn take(&mut self, position: SourcePosition, bytes: usize) -> Evaluated<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes {
            return Err(exhausted(
                position,
                "the values of the program are too large; make smaller ones",
            ));
        }
        Ok(())
    }

    pub(super) fn enter(&mut self, position: SourcePosition) -> Evaluated<()> {
        if self.depth >= self.limits.depth {
            let message = "values or references are nested too deep; make them flatter";
            return Err(exhausted(position, message));
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}

fn exhausted(position: SourcePosition, message: &'static str) -> std::rc::Rc<EvaluationFailure> {
    EvaluationFailure::new(Severity::Exhausted, position, message)
}
