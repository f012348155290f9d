//! Sums, products and quotients, rounded to 24 digits, halves away from zero.

use num_bigint::BigUint;
use thiserror::Error;

use super::{
    CueNumber,
    decimal::{Decimal, count_digits, power_of_ten},
    round::RoundingMode,
};

/// The maximum number of digits of a result.
pub(super) const PRECISION: i64 = 24;

/// Why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum ArithmeticError {
    #[error("the divisor is zero")]
    DivisionByZero,
    #[error("the result is out of range: its exponent would be beyond 100000")]
    OutOfRange,
}

/// Returns the coefficients of two numbers, scaled to the smaller of their exponents.
pub(super) fn aligned(left: &Decimal, right: &Decimal) -> (BigUint, BigUint, i64) {
    let exponent = left.exponent.min(right.exponent);
    let scaled = |number: &Decimal| {
        if number.exponent == exponent {
            number.coefficient.clone()
        } else {
            &number.coefficient * power_of_ten((number.exponent - exponent).unsigned_abs())
        }
    };
    (scaled(left), scaled(right), exponent)
}

/// Creates a result: an integer if both operands are.
fn combined(left: &CueNumber, right: &CueNumber, decimal: Decimal) -> Result<CueNumber, ArithmeticError> {
    Ok(CueNumber {
        decimal: decimal.rounded(PRECISION, RoundingMode::HalfUp)?,
        is_integer: left.is_integer && right.is_integer,
    })
}

impl CueNumber {
    pub(crate) fn plus(&self, other: &Self) -> Result<Self, ArithmeticError> {
        combined(self, other, sum(&self.decimal, &other.decimal)?)
    }

    pub(crate) fn minus(&self, other: &Self) -> Result<Self, ArithmeticError> {
        combined(self, other, sum(&self.decimal, &other.decimal.clone().negated())?)
    }

    pub(crate) fn times(&self, other: &Self) -> Result<Self, ArithmeticError> {
        let product = Decimal::new(
            self.decimal.is_negative != other.decimal.is_negative,
            &self.decimal.coefficient * &other.decimal.coefficient,
            self.decimal.exponent + other.decimal.exponent,
        );
        combined(self, other, product)
    }

    /// Always a `float`.
    pub(crate) fn divided_by(&self, other: &Self) -> Result<Self, ArithmeticError> {
        quotient(&self.decimal, &other.decimal).map(Self::float)
    }
}

fn sum(left: &Decimal, right: &Decimal) -> Result<Decimal, ArithmeticError> {
    if (left.exponent - right.exponent).abs() > super::decimal::LARGEST_EXPONENT {
        return Err(ArithmeticError::OutOfRange);
    }
    let (left, right) = (&replace_negligible(left, right), &replace_negligible(right, left));
    let (a, b, exponent) = aligned(left, right);
    Ok(if left.is_negative == right.is_negative {
        Decimal::new(left.is_negative, a + b, exponent)
    } else if a >= b {
        let is_zero = a == b;
        Decimal::new(left.is_negative && !is_zero, a - b, exponent)
    } else {
        Decimal::new(right.is_negative, b - a, exponent)
    })
}

/// Replaces a number that is negligible next to `other` by a small one of the same sign.
fn replace_negligible<'n>(number: &'n Decimal, other: &Decimal) -> std::borrow::Cow<'n, Decimal> {
    let last_digit = other.exponent.min(other.adjusted() - PRECISION);
    let small = last_digit - PRECISION;
    if other.is_zero() || number.adjusted() >= small || number.exponent >= small {
        return std::borrow::Cow::Borrowed(number);
    }
    let coefficient = BigUint::from(u8::from(!number.is_zero()));
    std::borrow::Cow::Owned(Decimal::new(number.is_negative, coefficient, small))
}

/// Divides to as many digits as are needed, at most 24; the exponent is at most the difference of both.
fn quotient(dividend: &Decimal, divisor: &Decimal) -> Result<Decimal, ArithmeticError> {
    if divisor.is_zero() {
        return Err(ArithmeticError::DivisionByZero);
    }
    let is_negative = dividend.is_negative != divisor.is_negative;
    let ideal = dividend.exponent - divisor.exponent;
    if dividend.is_zero() {
        let zero = Decimal::new(is_negative, BigUint::default(), ideal);
        return zero.in_range().ok_or(ArithmeticError::OutOfRange);
    }
    let (left, right) = (&dividend.coefficient, &divisor.coefficient);
    // The distance between the first digit of the quotient and its last possible one.
    let first = count_digits(left) - count_digits(right);
    let is_less = {
        let (left, right) = if first >= 0 {
            (left.clone(), right * power_of_ten(first.unsigned_abs()))
        } else {
            (left * power_of_ten(first.unsigned_abs()), right.clone())
        };
        left < right
    };
    let first = if is_less { first - 1 } else { first };
    // Scaled so that the quotient of the coefficients has exactly 24 digits.
    let scale = PRECISION - 1 - first;
    let (scaled_left, scaled_right) = if scale >= 0 {
        (left * power_of_ten(scale.unsigned_abs()), right.clone())
    } else {
        (left.clone(), right * power_of_ten(scale.unsigned_abs()))
    };
    let mut digits = &scaled_left / &scaled_right;
    let remainder = &scaled_left - &digits * &scaled_right;
    let mut exponent = ideal - scale;
    if remainder.bits() == 0 {
        // The quotient is exact: remove zeros beyond the exponents of the operands.
        let ten = BigUint::from(10_u8);
        while exponent < ideal && (&digits % &ten).bits() == 0 {
            digits /= &ten;
            exponent += 1;
        }
    } else if remainder * 2_u8 >= scaled_right {
        digits += 1_u8;
        if count_digits(&digits) > PRECISION {
            digits /= 10_u8;
            exponent += 1;
        }
    }
    Decimal::new(is_negative, digits, exponent)
        .in_range()
        .ok_or(ArithmeticError::OutOfRange)
}
