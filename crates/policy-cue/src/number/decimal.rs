//! A decimal number of any length: a sign, a coefficient and a power of ten.

use std::{cmp::Ordering, fmt};

use num_bigint::BigUint;

/// The largest exponent and, negated, the smallest.
pub(crate) const LARGEST_EXPONENT: i64 = 100_000;

/// The maximum number of digits in a literal or in a rounded result.
pub(crate) const MOST_DIGITS: usize = 1000;

/// Equality compares the values: see [`Decimal::compare`].
#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    pub(super) is_negative: bool,
    pub(super) coefficient: BigUint,
    pub(super) exponent: i64,
}

pub(super) fn power_of_ten(power: u64) -> BigUint {
    match u32::try_from(power)
        .ok()
        .and_then(|power| 10_u128.checked_pow(power))
    {
        Some(small) => small.into(),
        // Exponents differ by at most twice 100,000.
        None => BigUint::from(10_u8).pow(u32::try_from(power).unwrap_or(u32::MAX)),
    }
}

/// The number of decimal digits; 1 for zero.
pub(super) fn count_digits(number: &BigUint) -> i64 {
    if let Ok(small) = u64::try_from(number) {
        return small.checked_ilog10().map_or(1, |digits| i64::from(digits) + 1);
    }
    if let Ok(small) = u128::try_from(number) {
        return small.checked_ilog10().map_or(1, |digits| i64::from(digits) + 1);
    }
    i64::try_from(number.to_string().len()).unwrap_or(i64::MAX)
}

impl Decimal {
    pub(crate) fn new(is_negative: bool, coefficient: BigUint, exponent: i64) -> Self {
        Self {
            is_negative,
            coefficient,
            exponent,
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.coefficient.bits() == 0
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// Parses digits with an optional sign, fraction and exponent; `None` if invalid or out of range.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        if whole.len() + fraction.len() == 0 || !digits().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let small = digits().try_fold(0_u64, |number, digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        });
        let coefficient = match small {
            Some(small) => small.into(),
            None => BigUint::parse_bytes(format!("{whole}{fraction}").as_bytes(), 10)?,
        };
        let fraction = i64::try_from(fraction.len()).ok()?;
        Self::new(is_negative, coefficient, i64::from(exponent) - fraction).in_range()
    }

    /// Returns the number if its first digit and its exponent are in the range of decimals.
    pub(super) fn in_range(self) -> Option<Self> {
        let adjusted = self.adjusted();
        let range = -LARGEST_EXPONENT..=LARGEST_EXPONENT;
        (range.contains(&self.exponent) && range.contains(&adjusted)).then_some(self)
    }

    /// The exponent of the first digit.
    pub(super) fn adjusted(&self) -> i64 {
        self.exponent + count_digits(&self.coefficient) - 1
    }

    pub(crate) fn negated(mut self) -> Self {
        // Zero is never negative.
        self.is_negative = !self.is_negative && !self.is_zero();
        self
    }

    pub(crate) fn absolute(mut self) -> Self {
        self.is_negative = false;
        self
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => return Ordering::Equal,
            (true, false) if other.is_negative => return Ordering::Greater,
            (true, false) => return Ordering::Less,
            (false, true) if self.is_negative => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        match (self.is_negative, other.is_negative) {
            (false, true) => return Ordering::Greater,
            (true, false) => return Ordering::Less,
            _ => {}
        }
        let absolute = self.compare_absolute(other);
        if self.is_negative {
            absolute.reverse()
        } else {
            absolute
        }
    }

    fn compare_absolute(&self, other: &Self) -> Ordering {
        if self.exponent == other.exponent {
            return self.coefficient.cmp(&other.coefficient);
        }
        // Most comparisons are decided before scaling.
        self.adjusted().cmp(&other.adjusted()).then_with(|| {
            let (left, right, _) = super::arithmetic::aligned(self, other);
            left.cmp(&right)
        })
    }

    /// The value, if it is an integer of at most 64 bits.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        let magnitude = i128::from(self.magnitude()?);
        let signed = if self.is_negative { -magnitude } else { magnitude };
        i64::try_from(signed).ok()
    }

    /// Like [`Decimal::to_i64`], for non-negative values.
    pub(crate) fn to_u64(&self) -> Option<u64> {
        let magnitude = self.magnitude()?;
        (!self.is_negative || magnitude == 0).then_some(magnitude)
    }

    fn magnitude(&self) -> Option<u64> {
        if self.exponent == 0 || self.is_zero() {
            return u64::try_from(&self.coefficient).ok();
        }
        if self.exponent > 0 {
            if self.adjusted() > 20 {
                return None;
            }
            let scale = power_of_ten(self.exponent.unsigned_abs());
            return u64::try_from(&self.coefficient * scale).ok();
        }
        if self.adjusted() < 0 || self.adjusted() > 20 {
            return None;
        }
        let scale = power_of_ten(self.exponent.unsigned_abs());
        let whole = &self.coefficient / &scale;
        (&whole * scale == self.coefficient)
            .then(|| u64::try_from(whole).ok())
            .flatten()
    }

    /// The nearest double; infinite if out of range.
    pub(crate) fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Self::new(number < 0, number.unsigned_abs().into(), 0)
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Self {
        Self::new(false, number.into(), 0)
    }
}

/// Formats as in General Decimal Arithmetic: plain if the exponent is not positive and not far below zero,
/// else scientific.
impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative {
            formatter.write_str("-")?;
        }
        let digits = self.coefficient.to_string();
        if self.exponent == 0 {
            return formatter.write_str(&digits);
        }
        let adjusted = self.adjusted();
        if self.exponent > 0 || adjusted < -6 {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(formatter, "{first}{point}{rest}E{adjusted:+}");
        }
        let fraction = usize::try_from(-self.exponent).unwrap_or_default();
        match digits.len().checked_sub(fraction) {
            Some(whole) if whole > 0 => {
                let (whole, fraction) = digits.split_at(whole);
                write!(formatter, "{whole}.{fraction}")
            }
            _ => write!(formatter, "0.{digits:0>fraction$}"),
        }
    }
}
