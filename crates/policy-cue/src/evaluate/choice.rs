//! Disjunctions: the remaining alternatives and their default.

use std::rc::Rc;

use crate::{
    evaluate::{
        Evaluation,
        failure::{Evaluated, EvaluationFailure, Severity, SharedFailure},
        node::ScopeId,
        value::{Choice, CueValue},
    },
    kind::KindSet,
    syntax::Alternative,
};

/// One of several disjunctions that apply to a field.
pub(super) enum PendingChoice<'a> {
    Alternatives(&'a [Alternative], ScopeId),
    Values(Rc<Choice<'a>>),
}

/// The effect of a default mark on a value. Of two, the later variant takes precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DefaultMode {
    /// No alternative is marked.
    Maybe,
    Is,
    /// Another alternative is marked.
    Not,
}

/// A remaining value, with its marks in each disjunction: in the outer one, and in a nested choice.
struct Candidate<'a> {
    value: CueValue<'a>,
    modes: Vec<(DefaultMode, DefaultMode)>,
}

impl Candidate<'_> {
    /// Combines the marks; `used` tells for each disjunction whether a marked value remains.
    fn mode(&self, marks: &[(bool, bool)]) -> DefaultMode {
        let mut mode = DefaultMode::Maybe;
        for ((outer, inner), (has_marks, is_used)) in self.modes.iter().zip(marks) {
            if !has_marks || *is_used {
                mode = mode.max(*outer).max(*inner);
            }
        }
        mode
    }
}

impl<'a> Evaluation<'a, '_> {
    /// Returns the alternatives that are consistent with the value and all disjunctions.
    pub(super) fn choose(
        &mut self,
        value: CueValue<'a>,
        pending: Vec<PendingChoice<'a>>,
    ) -> Evaluated<CueValue<'a>> {
        let position = self.position;
        let mut failure = None;
        let mut marks = Vec::with_capacity(pending.len());
        let mut candidates = vec![Candidate {
            value,
            modes: Vec::new(),
        }];
        for choice in pending {
            let (alternatives, has_marks, is_used) = self.alternatives(choice, &mut failure)?;
            marks.push((has_marks, is_used));
            let mut left: Vec<Candidate<'a>> = Vec::new();
            for candidate in &candidates {
                for (value, outer, inner) in &alternatives {
                    self.step()?;
                    match self.unify_values(&candidate.value, value) {
                        Ok(value) => {
                            let mut modes = candidate.modes.clone();
                            modes.push((*outer, *inner));
                            self.add_candidate(&mut left, Candidate { value, modes })?;
                        }
                        Err(found) if found.is_final() => return Err(found),
                        Err(found) => failure = softer_failure(failure, found),
                    }
                }
            }
            candidates = left;
        }
        for (index, mark) in marks.iter_mut().enumerate() {
            mark.1 |= candidates
                .iter()
                .any(|candidate| candidate.modes[index].0 == DefaultMode::Is);
        }
        self.position = position;
        if candidates.len() > 1 {
            let has_marks = marks.iter().any(|(has_marks, _)| *has_marks);
            let (mut values, others): (Vec<_>, Vec<_>) = candidates
                .into_iter()
                .partition(|candidate| candidate.mode(&marks) == DefaultMode::Is);
            let defaults = values.len();
            values.extend(others);
            let values = values.into_iter().map(|candidate| candidate.value).collect();
            return Ok(CueValue::Choice(Rc::new(Choice {
                values,
                defaults,
                has_marks,
            })));
        }
        candidates.pop().map_or_else(
            || Err(failure.unwrap_or_else(|| self.incomplete("no alternative of the disjunction remains"))),
            |candidate| Ok(candidate.value),
        )
    }

    /// Returns the values of alternatives with their marks, whether there are marks, and whether an
    /// incomplete alternative is marked. Alternatives that fail to evaluate are omitted.
    #[expect(clippy::type_complexity, reason = "used once")]
    fn alternatives(
        &mut self,
        choice: PendingChoice<'a>,
        failure: &mut Option<SharedFailure>,
    ) -> Evaluated<(Vec<(CueValue<'a>, DefaultMode, DefaultMode)>, bool, bool)> {
        let mark = |has_marks: bool, is_default: bool| match (has_marks, is_default) {
            (false, _) => DefaultMode::Maybe,
            (true, true) => DefaultMode::Is,
            (true, false) => DefaultMode::Not,
        };
        let mut values = Vec::new();
        match choice {
            PendingChoice::Values(choice) => {
                for (index, value) in choice.values.iter().enumerate() {
                    let mode = mark(choice.has_marks, index < choice.defaults);
                    values.push((value.clone(), mode, mode));
                }
                Ok((values, choice.has_marks, false))
            }
            PendingChoice::Alternatives(alternatives, scope) => {
                let mut is_used = false;
                let has_marks = alternatives.iter().any(|alternative| alternative.is_default);
                for alternative in alternatives {
                    let outer = mark(has_marks, alternative.is_default);
                    match self.evaluate(&alternative.value, scope) {
                        Ok(CueValue::Choice(inner)) => {
                            for (index, value) in inner.values.iter().enumerate() {
                                let inner = mark(inner.has_marks, index < inner.defaults);
                                values.push((value.clone(), outer, outer.max(inner)));
                            }
                        }
                        Ok(value) => values.push((value, outer, outer)),
                        Err(found) if found.is_final() => return Err(found),
                        Err(found) => {
                            is_used |= alternative.is_default && found.is_incomplete();
                            *failure = softer_failure(failure.take(), found);
                        }
                    }
                }
                Ok((values, has_marks, is_used))
            }
        }
    }

    /// Adds a candidate; of equal ones keeps the default.
    fn add_candidate(&mut self, left: &mut Vec<Candidate<'a>>, candidate: Candidate<'a>) -> Evaluated<()> {
        for kept in left.iter_mut() {
            self.step()?;
            if self.are_equal(&kept.value, &candidate.value)? {
                let is_default = candidate
                    .modes
                    .iter()
                    .map(|(_, inner)| *inner)
                    .max()
                    .is_some_and(|mode| mode == DefaultMode::Is);
                if is_default {
                    *kept = candidate;
                }
                return Ok(());
            }
        }
        left.push(candidate);
        Ok(())
    }

    /// Unifies two values.
    fn unify_values(&self, left: &CueValue<'a>, right: &CueValue<'a>) -> Evaluated<CueValue<'a>> {
        match (left, right) {
            (CueValue::Kind(left), CueValue::Kind(right)) => {
                let kinds = *left & *right;
                if kinds.is_empty() {
                    return Err(self.conflict(&CueValue::Kind(*left), &CueValue::Kind(*right)));
                }
                Ok(CueValue::Kind(kinds))
            }
            (CueValue::Kind(kind), value) | (value, CueValue::Kind(kind)) => {
                if kind.contains(self.kind(value)) {
                    return Ok(value.clone());
                }
                Err(self.conflict(left, right))
            }
            _ => {
                let (kind, other) = (self.kind(left), self.kind(right));
                let is_composed = kind == other && kind.intersects(KindSet::STRUCT | KindSet::LIST);
                if is_composed {
                    let message = "an alternative that is a struct or list cannot be unified with another; \
                        use \"if\" instead";
                    return Err(EvaluationFailure::new(
                        Severity::Unsupported,
                        self.position,
                        message,
                    ));
                }
                if self.are_equal_scalars(left, right) {
                    return Ok(left.clone());
                }
                Err(self.conflict(left, right))
            }
        }
    }

    fn conflict(&self, left: &CueValue<'a>, right: &CueValue<'a>) -> SharedFailure {
        let (left, right) = (self.describe(left), self.describe(right));
        self.error(format!("the value cannot be both {left} and {right}"))
    }
}

/// Combines failures of alternatives: incomplete if one of them is.
fn softer_failure(first: Option<SharedFailure>, second: SharedFailure) -> Option<SharedFailure> {
    match first {
        Some(first) if second.severity <= first.severity => Some(first),
        _ => Some(second),
    }
}
