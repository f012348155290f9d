//! Rounds decimals.

use std::cmp::Ordering;

use num_bigint::BigUint;

use super::{
    arithmetic::ArithmeticError,
    decimal::{Decimal, MOST_DIGITS, count_digits, power_of_ten},
};

/// The treatment of dropped digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundingMode {
    /// To the nearest, halves away from zero.
    HalfUp,
    /// To the nearest, halves to the even one.
    HalfEven,
    /// Towards zero.
    Down,
    /// Towards negative infinity.
    Floor,
    /// Towards positive infinity.
    Ceiling,
}

/// Returns a coefficient without its last digits, rounded.
fn shortened(coefficient: &BigUint, dropped: u64, is_negative: bool, mode: RoundingMode) -> BigUint {
    // A fast path: small numbers need no allocation.
    let small_scale = u32::try_from(dropped)
        .ok()
        .and_then(|dropped| 10_u128.checked_pow(dropped));
    if let (Ok(small), Some(scale)) = (u128::try_from(coefficient), small_scale) {
        let (kept, rest) = (small / scale, small % scale);
        let is_up = is_rounded_up(
            rest.cmp(&(scale - rest)),
            rest == 0,
            kept % 2 == 1,
            is_negative,
            mode,
        );
        return BigUint::from(kept) + u8::from(is_up);
    }
    let scale = power_of_ten(dropped);
    let kept = coefficient / &scale;
    let rest = coefficient - &kept * &scale;
    let is_up = is_rounded_up(
        (&rest * 2_u8).cmp(&scale),
        rest.bits() == 0,
        kept.bit(0),
        is_negative,
        mode,
    );
    kept + u8::from(is_up)
}

/// Reports whether the kept digits are incremented. `half` compares the dropped digits with a half.
fn is_rounded_up(
    half: Ordering,
    is_exact: bool,
    is_odd: bool,
    is_negative: bool,
    mode: RoundingMode,
) -> bool {
    match mode {
        RoundingMode::HalfUp => half.is_ge(),
        RoundingMode::HalfEven => half.is_gt() || half.is_eq() && is_odd,
        RoundingMode::Down => false,
        RoundingMode::Floor => is_negative && !is_exact,
        RoundingMode::Ceiling => !is_negative && !is_exact,
    }
}

impl Decimal {
    /// Rounds to at most this number of digits.
    pub(super) fn rounded(self, digits: i64, mode: RoundingMode) -> Result<Self, ArithmeticError> {
        let dropped = count_digits(&self.coefficient) - digits;
        let mut result = self;
        if dropped > 0 {
            let kept = shortened(
                &result.coefficient,
                dropped.unsigned_abs(),
                result.is_negative,
                mode,
            );
            result = Self::new(result.is_negative, kept, result.exponent + dropped);
            if count_digits(&result.coefficient) > digits {
                result.coefficient /= 10_u8;
                result.exponent += 1;
            }
        }
        result.in_range().ok_or(ArithmeticError::OutOfRange)
    }

    /// Rounds to an integer with exponent zero.
    ///
    /// # Errors
    /// If it has too many digits.
    pub(crate) fn to_integral(&self, mode: RoundingMode) -> Result<Self, ArithmeticError> {
        if self.exponent >= 0 {
            if self.adjusted() >= i64::try_from(MOST_DIGITS).unwrap_or(i64::MAX) {
                return Err(ArithmeticError::OutOfRange);
            }
            let scale = power_of_ten(self.exponent.unsigned_abs());
            return Ok(Self::new(self.is_negative, &self.coefficient * scale, 0));
        }
        let dropped = self.exponent.unsigned_abs();
        // Far below one, all digits are dropped.
        let digits = count_digits(&self.coefficient).unsigned_abs();
        let dropped = dropped.min(digits + 1);
        let whole = shortened(&self.coefficient, dropped, self.is_negative, mode);
        let is_negative = self.is_negative && whole.bits() > 0;
        Ok(Self::new(is_negative, whole, 0))
    }

    /// Reports whether the number has no fraction.
    pub(crate) fn is_whole(&self) -> bool {
        self.exponent >= 0
            || self.is_zero()
            || self
                .to_integral(RoundingMode::Down)
                .is_ok_and(|whole| self.compare(&whole).is_eq())
    }
}
