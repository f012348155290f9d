//! CUE numbers: integers and floats as decimals with 24 digits.

mod arithmetic;
mod decimal;
mod literal;
mod round;

use std::{cmp::Ordering, fmt};

pub(crate) use arithmetic::ArithmeticError;
pub(crate) use decimal::Decimal;
pub(crate) use literal::parse_literal;
pub(crate) use round::RoundingMode;

/// A decimal, and whether it is an `int` or a `float`.
#[derive(Clone, Debug)]
pub(crate) struct CueNumber {
    pub(crate) decimal: Decimal,
    pub(crate) is_integer: bool,
}

impl CueNumber {
    pub(crate) fn integer(decimal: Decimal) -> Self {
        Self {
            decimal,
            is_integer: true,
        }
    }

    pub(crate) fn float(decimal: Decimal) -> Self {
        Self {
            decimal,
            is_integer: false,
        }
    }

    /// `None` for a JSON number out of the range of decimals; no parsed number is.
    pub(crate) fn from_json(number: &serde_json::Number) -> Option<Self> {
        if let Some(number) = number.as_i64() {
            return Some(Self::integer(number.into()));
        }
        if let Some(number) = number.as_u64() {
            return Some(Self::integer(number.into()));
        }
        Decimal::parse(&number.to_string()).map(Self::float)
    }

    /// Converts any whole number to a JSON integer, for readers that require integers.
    pub(crate) fn to_json(&self) -> Option<serde_json::Number> {
        if let Some(number) = self.decimal.to_i64() {
            return Some(number.into());
        }
        if let Some(number) = self.decimal.to_u64() {
            return Some(number.into());
        }
        serde_json::Number::from_f64(self.decimal.to_f64())
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.decimal.compare(&other.decimal)
    }
}

impl fmt::Display for CueNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.decimal.fmt(formatter)
    }
}

#[cfg(test)]
mod tests;
