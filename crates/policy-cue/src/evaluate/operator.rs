//! Arithmetic, comparison and logic.

use std::{cmp::Ordering, collections::HashMap};

use crate::{
    evaluate::{
        Evaluation,
        failure::{Evaluated, Severity, SharedFailure, both_or_worse},
        node::ScopeId,
        value::{CueValue, ValuePlace},
    },
    kind::KindSet,
    number::{ArithmeticError, CueNumber},
    pattern::Pattern,
    syntax::{BinaryOperation, BinaryOperator, Expression, ExpressionKind},
};

impl<'a> Evaluation<'a, '_> {
    /// Evaluates operators of one precedence from left to right.
    pub(super) fn operations(
        &mut self,
        first: &'a Expression,
        rest: &'a [BinaryOperation],
        scope: ScopeId,
    ) -> Evaluated<CueValue<'a>> {
        let is_bottom = |expression: &Expression| matches!(expression.kind, ExpressionKind::Bottom);
        let mut left = None;
        for operation in rest {
            self.step()?;
            self.position = operation.position;
            let is_equality = matches!(
                operation.operator,
                BinaryOperator::Equal | BinaryOperator::NotEqual
            );
            let value = match left.take() {
                None if is_equality && is_bottom(first) => {
                    let right = self.evaluate(&operation.right, scope);
                    self.compare_with_bottom(right, operation.operator)
                }
                before if is_equality && is_bottom(&operation.right) => {
                    let value = before.unwrap_or_else(|| self.evaluate(first, scope));
                    self.compare_with_bottom(value, operation.operator)
                }
                before => {
                    let value = match before {
                        Some(Ok(value)) => self.require_concrete(value),
                        Some(failure) => failure,
                        None => self.concrete(first, scope),
                    };
                    self.operation(value, operation, scope)
                }
            };
            if let Err(failure) = &value
                && failure.is_final()
            {
                return value;
            }
            left = Some(value);
        }
        left.unwrap_or_else(|| self.evaluate(first, scope))
    }

    /// Compares with `_|_`: whether an expression has a value.
    fn compare_with_bottom(
        &mut self,
        value: Evaluated<CueValue<'a>>,
        operator: BinaryOperator,
    ) -> Evaluated<CueValue<'a>> {
        let wants_bottom = operator == BinaryOperator::Equal;
        let is_so = match value {
            Err(failure) if failure.is_final() || failure.severity == Severity::Cycle => return Err(failure),
            Err(_) => wants_bottom,
            // An undecided value neither equals nor differs from `_|_`.
            Ok(value) => match self.decide(value) {
                Err(_) => false,
                Ok(CueValue::Kind(_)) => wants_bottom,
                Ok(_) => !wants_bottom,
            },
        };
        Ok(CueValue::Bool(is_so))
    }

    fn operation(
        &mut self,
        left: Evaluated<CueValue<'a>>,
        operation: &'a BinaryOperation,
        scope: ScopeId,
    ) -> Evaluated<CueValue<'a>> {
        // The right side matters only if the left one is not decisive.
        match (operation.operator, &left) {
            (BinaryOperator::And, Ok(CueValue::Bool(false)))
            | (BinaryOperator::Or, Ok(CueValue::Bool(true))) => {
                return left;
            }
            _ => {}
        }
        let right = self.concrete(&operation.right, scope);
        let (left, right) = both_or_worse(left, right)?;
        self.position = operation.position;
        match operation.operator {
            BinaryOperator::And | BinaryOperator::Or => match (&left, &right) {
                (CueValue::Bool(_), CueValue::Bool(_)) => Ok(right),
                (CueValue::Bool(_), other) | (other, _) => Err(self.wrong_kind(other, KindSet::BOOL)),
            },
            BinaryOperator::Match | BinaryOperator::NotMatch => self.matches(&left, &right, operation),
            BinaryOperator::Equal => self.equal(&left, &right, true).map(CueValue::Bool),
            BinaryOperator::NotEqual => self
                .equal(&left, &right, false)
                .map(|is_equal| CueValue::Bool(!is_equal)),
            BinaryOperator::Less => self.ordered(&left, &right, operation, Ordering::is_lt),
            BinaryOperator::LessOrEqual => self.ordered(&left, &right, operation, Ordering::is_le),
            BinaryOperator::Greater => self.ordered(&left, &right, operation, Ordering::is_gt),
            BinaryOperator::GreaterOrEqual => self.ordered(&left, &right, operation, Ordering::is_ge),
            BinaryOperator::Add => self.add_values(&left, &right),
            BinaryOperator::Subtract => self.arithmetic(&left, &right, "-", CueNumber::minus),
            BinaryOperator::Multiply => self.multiply(&left, &right),
            BinaryOperator::Divide => self.arithmetic(&left, &right, "/", CueNumber::divided_by),
        }
    }

    fn mismatched(&self, left: &CueValue<'a>, right: &CueValue<'a>, symbol: &str) -> SharedFailure {
        let (left, right) = (self.kind(left), self.kind(right));
        self.error(format!("{symbol:?} cannot be applied to {left} and {right}"))
    }

    /// Reports whether values are equal; `wanted` is the outcome that the operator tests for.
    fn equal(&mut self, left: &CueValue<'a>, right: &CueValue<'a>, wanted: bool) -> Evaluated<bool> {
        match (left, right) {
            (CueValue::Null, other) | (other, CueValue::Null) => Ok(matches!(other, CueValue::Null)),
            (CueValue::Bool(left), CueValue::Bool(right)) => Ok(left == right),
            (CueValue::Text(left), CueValue::Text(right)) => Ok(**left == **right),
            (CueValue::Number(left), CueValue::Number(right)) => Ok(left.compare(right).is_eq()),
            _ if self.kind(left) == KindSet::LIST && self.kind(right) == KindSet::LIST => {
                self.equal_lists(left, right, wanted)
            }
            _ => Err(self.mismatched(left, right, "==")),
        }
    }

    fn equal_lists(&mut self, left: &CueValue<'a>, right: &CueValue<'a>, wanted: bool) -> Evaluated<bool> {
        let (Some(left), Some(right)) = (self.list(left)?, self.list(right)?) else {
            return Err(self.mismatched(left, right, "=="));
        };
        if left.len() != right.len() {
            // CUE v0.4.3 treats these as neither equal nor unequal.
            return Ok(!wanted);
        }
        self.spending.enter(self.position)?;
        let are_equal = self.equal_items(&left, &right);
        self.spending.leave();
        are_equal
    }

    fn equal_items(&mut self, left: &[ValuePlace<'a>], right: &[ValuePlace<'a>]) -> Evaluated<bool> {
        for (left, right) in left.iter().zip(right) {
            self.step()?;
            let is_equal = both_or_worse(self.concrete_at(left), self.concrete_at(right))
                .and_then(|(left, right)| self.equal(&left, &right, true));
            match is_equal {
                Ok(true) => {}
                Err(failure) if failure.is_final() => return Err(failure),
                // Within lists, incomparable items are unequal.
                Ok(false) | Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    fn concrete_at(&mut self, place: &ValuePlace<'a>) -> Evaluated<CueValue<'a>> {
        let value = self.value_of(place)?;
        let value = self.decide(value)?;
        self.require_concrete(value)
    }

    fn ordered(
        &self,
        left: &CueValue<'a>,
        right: &CueValue<'a>,
        operation: &BinaryOperation,
        is_so: fn(Ordering) -> bool,
    ) -> Evaluated<CueValue<'a>> {
        let order = match (left, right) {
            (CueValue::Text(left), CueValue::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
            (CueValue::Number(left), CueValue::Number(right)) => left.compare(right),
            _ => return Err(self.mismatched(left, right, operation.operator.symbol())),
        };
        Ok(CueValue::Bool(is_so(order)))
    }

    fn matches(
        &mut self,
        left: &CueValue<'a>,
        right: &CueValue<'a>,
        operation: &'a BinaryOperation,
    ) -> Evaluated<CueValue<'a>> {
        let wanted = operation.operator == BinaryOperator::Match;
        let (CueValue::Text(text), CueValue::Text(pattern)) = (left, right) else {
            return Err(self.mismatched(left, right, operation.operator.symbol()));
        };
        let made;
        let pattern = match &operation.pattern {
            Some(pattern) => pattern,
            None => {
                self.take(pattern.len().saturating_mul(Pattern::COST))?;
                made = Pattern::new(pattern).map_err(|message| self.error(message))?;
                &made
            }
        };
        for _ in 0..text.len().div_ceil(Pattern::BYTES_A_STEP) {
            self.step()?;
        }
        let is_match = pattern.is_match(text).map_err(|message| self.error(message))?;
        Ok(CueValue::Bool(is_match == wanted))
    }

    fn arithmetic(
        &self,
        left: &CueValue<'a>,
        right: &CueValue<'a>,
        symbol: &str,
        compute: fn(&CueNumber, &CueNumber) -> Result<CueNumber, ArithmeticError>,
    ) -> Evaluated<CueValue<'a>> {
        let (CueValue::Number(left), CueValue::Number(right)) = (left, right) else {
            return Err(self.mismatched(left, right, symbol));
        };
        let number = compute(left, right).map_err(|error| self.error(error.to_string()))?;
        Ok(CueValue::number(number))
    }

    fn add_values(&mut self, left: &CueValue<'a>, right: &CueValue<'a>) -> Evaluated<CueValue<'a>> {
        if let (CueValue::Text(left), CueValue::Text(right)) = (left, right) {
            self.take(left.len() + right.len())?;
            return Ok(CueValue::text(&format!("{}{}", &**left, &**right)));
        }
        if let (Some(mut items), Some(others)) = (self.list(left)?, self.list(right)?) {
            items.extend(others);
            return self.new_list(items);
        }
        self.arithmetic(left, right, "+", CueNumber::plus)
    }

    fn multiply(&mut self, left: &CueValue<'a>, right: &CueValue<'a>) -> Evaluated<CueValue<'a>> {
        let ((CueValue::Number(count), repeated) | (repeated, CueValue::Number(count))) = (left, right)
        else {
            return Err(self.mismatched(left, right, "*"));
        };
        let is_number = matches!(repeated, CueValue::Number(_));
        if is_number || !count.is_integer {
            return self.arithmetic(left, right, "*", CueNumber::times);
        }
        let times = count
            .decimal
            .to_u64()
            .and_then(|times| usize::try_from(times).ok());
        let times = times.ok_or_else(|| self.error("the number of repetitions is negative or too large"))?;
        if let CueValue::Text(text) = repeated {
            self.take(text.len().saturating_mul(times))?;
            return Ok(CueValue::text(&text.repeat(times)));
        }
        let Some(items) = self.list(repeated)? else {
            return Err(self.mismatched(left, right, "*"));
        };
        let length = items.len().saturating_mul(times);
        self.take(length.saturating_mul(size_of::<ValuePlace<'_>>()))?;
        let mut all = Vec::with_capacity(length);
        if !items.is_empty() {
            for _ in 0..times {
                all.extend_from_slice(&items);
            }
        }
        self.new_list(all)
    }

    /// Reports whether scalars have the same kind and value.
    pub(super) fn are_equal_scalars(&self, left: &CueValue<'a>, right: &CueValue<'a>) -> bool {
        match (left, right) {
            (CueValue::Null, CueValue::Null) => true,
            (CueValue::Bool(left), CueValue::Bool(right)) => left == right,
            (CueValue::Text(left), CueValue::Text(right)) => **left == **right,
            (CueValue::Number(left), CueValue::Number(right)) => {
                left.is_integer == right.is_integer && left.compare(right).is_eq()
            }
            (CueValue::Kind(left), CueValue::Kind(right)) => left == right,
            _ => false,
        }
    }

    /// Reports whether values are deeply equal, as in `list.Contains`.
    pub(crate) fn are_equal(&mut self, left: &CueValue<'a>, right: &CueValue<'a>) -> Evaluated<bool> {
        self.step()?;
        let kind = self.kind(left);
        if kind != self.kind(right) {
            return Ok(false);
        }
        if let (Some(left), Some(right)) = (self.list(left)?, self.list(right)?) {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(&right) {
                if !self.are_equal_at(left, right)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if kind != KindSet::STRUCT {
            return Ok(self.are_equal_scalars(left, right));
        }
        let (left, right) = (self.fields(left)?, self.fields(right)?);
        if left.len() != right.len() {
            return Ok(false);
        }
        let right: HashMap<_, _> = right.into_iter().collect();
        for (label, value) in &left {
            let Some(other) = right.get(label) else {
                return Ok(false);
            };
            self.step()?;
            if !self.are_equal_at(value, other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn are_equal_at(&mut self, left: &ValuePlace<'a>, right: &ValuePlace<'a>) -> Evaluated<bool> {
        let (left, right) = both_or_worse(self.value_of(left), self.value_of(right))?;
        self.spending.enter(self.position)?;
        let is_equal = self.are_equal(&left, &right);
        self.spending.leave();
        is_equal
    }
}
