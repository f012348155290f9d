//! Resource quantities: `500m`, `1Gi`, `1e3`.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::{Add, AddAssign},
    str::FromStr,
};

/// An amount of a resource, in billionths, with the notation in which it was written. Corresponds to
/// `resource.Quantity` of `k8s.io/apimachinery`.
///
/// Quantities of the same amount are equal, whatever their notation.
///
/// # Guarantees
///
/// - Fractions of a billionth are rounded away from zero, so that a small request does not become zero.
/// - Amounts with a binary suffix are at most 2^63-1.
/// - A sum that is too large becomes the largest amount.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    billionths: i128,
    notation: Notation,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The syntax is invalid.
    #[error("{0:?} is not a quantity: use for example 500m, 2, 1Gi or 1e3")]
    Syntax(String),
    /// The amount exceeds 10^29.
    #[error("{0:?} is too large for a quantity")]
    TooLarge(String),
}

/// The notation of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Notation {
    /// `5k`
    #[default]
    Decimal,
    /// `5e3`
    Exponent,
    /// `5Ki`
    Binary,
}

/// The digits of a number.
struct Digits<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

/// The power of ten of each decimal suffix.
const DECIMAL: [(&str, i64); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// The binary suffixes, each 1024 times the previous one.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const ONE: i128 = 1_000_000_000;

/// The largest amount with a binary suffix: 2^63-1.
const LARGEST_BINARY: i128 = (i64::MAX as i128) * ONE;

impl Quantity {
    /// The amount zero, in decimal notation.
    pub const ZERO: Self = Self {
        billionths: 0,
        notation: Notation::Decimal,
    };

    /// A thousandth, the smallest part of a CPU that Kubernetes counts.
    pub const MILLI: Self = Self {
        billionths: ONE / 1000,
        notation: Notation::Decimal,
    };

    /// One, the unit of resources without fractions.
    pub const ONE: Self = Self {
        billionths: ONE,
        notation: Notation::Decimal,
    };

    /// Parses a quantity.
    ///
    /// # Errors
    ///
    /// When the text is not a quantity, or the amount is too large.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let syntax = || QuantityError::Syntax(text.to_owned());
        let too_large = || QuantityError::TooLarge(text.to_owned());
        let (digits, suffix) = Digits::split(text).ok_or_else(syntax)?;
        let (amount, notation) = if let Some(power) = binary_power(suffix) {
            (Some(digits.times_binary(power)), Notation::Binary)
        } else if let Some(power) = decimal_power(suffix) {
            (digits.times_decimal(power), Notation::Decimal)
        } else {
            let power = exponent(suffix).ok_or_else(syntax)?;
            (digits.times_decimal(power), Notation::Exponent)
        };
        let amount = amount.ok_or_else(too_large)?;
        Ok(Self {
            billionths: if digits.is_negative { -amount } else { amount },
            notation: match notation {
                Notation::Binary if amount < ONE => Notation::Decimal,
                notation => notation,
            },
        })
    }

    /// Multiplies the amount by a factor. Fractions of a billionth are rounded away from zero; a result that
    /// is too large becomes the largest amount.
    #[must_use]
    pub fn times(self, factor: Self) -> Self {
        let (whole, part) = (self.billionths / ONE, self.billionths % ONE);
        let of_whole = whole.saturating_mul(factor.billionths);
        let of_part = part.saturating_mul(factor.billionths);
        let rounding = i128::from(of_part % ONE != 0) * of_part.signum();
        Self {
            billionths: of_whole.saturating_add(of_part / ONE).saturating_add(rounding),
            ..self
        }
    }

    /// Reports whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.billionths == 0
    }

    /// Rounds to a multiple of `unit`, away from zero.
    #[must_use]
    pub fn rounded_up(self, unit: Self) -> Self {
        let beyond = self.billionths.checked_rem(unit.billionths).unwrap_or(0);
        let missing = match beyond {
            0 => 0,
            beyond => beyond.signum() * unit.billionths - beyond,
        };
        Self {
            billionths: self.billionths.saturating_add(missing),
            ..self
        }
    }

    /// Returns the same amount in the notation `5k`.
    #[must_use]
    pub fn in_decimal(self) -> Self {
        Self {
            notation: Notation::Decimal,
            ..self
        }
    }

    /// Returns the same amount in the notation `5Ki`.
    #[must_use]
    pub fn in_binary(self) -> Self {
        Self {
            notation: Notation::Binary,
            ..self
        }
    }

    /// Returns the closest float.
    pub fn to_f64(self) -> f64 {
        if self.billionths % ONE == 0 {
            return (self.billionths / ONE) as f64;
        }
        self.billionths as f64 / ONE as f64
    }

    /// Returns the number and the binary suffix, if that is exact.
    fn binary_parts(self) -> Option<(i128, &'static str)> {
        let mut number = self.billionths / ONE;
        if self.billionths % ONE != 0 || number.abs() < 1024 {
            return None;
        }
        let mut suffix = "";
        for larger in BINARY {
            if number % 1024 != 0 {
                break;
            }
            number /= 1024;
            suffix = larger;
        }
        Some((number, suffix))
    }

    /// Returns the number and the largest power of ten, a multiple of three, that represent it without a
    /// fraction.
    fn decimal_parts(self) -> (i128, i64) {
        let (mut number, mut power) = (self.billionths, -9);
        while number != 0 && number % 1000 == 0 {
            number /= 1000;
            power += 3;
        }
        (number, power)
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self {
            billionths: i128::from(number) * ONE,
            notation: Notation::Decimal,
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Prints the canonical form: no fraction, and the largest suffix that allows it.
impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return formatter.write_str("0");
        }
        if self.notation == Notation::Binary
            && let Some((number, suffix)) = self.binary_parts()
        {
            return write!(formatter, "{number}{suffix}");
        }
        let (number, power) = self.decimal_parts();
        if self.notation != Notation::Exponent
            && let Some((suffix, _)) = DECIMAL.iter().find(|(_, of)| *of == power)
        {
            return write!(formatter, "{number}{suffix}");
        }
        match power {
            0 => write!(formatter, "{number}"),
            power => write!(formatter, "{number}e{power}"),
        }
    }
}

/// Keeps the notation of the first summand that is not zero.
impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        if self.is_zero() {
            self.notation = other.notation;
        }
        self.billionths = self.billionths.saturating_add(other.billionths);
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.billionths == other.billionths
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.billionths.cmp(&other.billionths)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.billionths.hash(state);
    }
}

impl<'a> Digits<'a> {
    /// Splits a number off the front of `text`; it may have a sign and a fraction, and has at least one
    /// digit.
    fn split(text: &'a str) -> Option<(Self, &'a str)> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = leading_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits = Self {
            is_negative: text.starts_with('-'),
            whole: whole.trim_start_matches('0'),
            fraction: fraction.trim_end_matches('0'),
        };
        Some((digits, suffix))
    }

    /// Returns the billionths times a power of ten; `None` if the result is too large.
    fn times_decimal(&self, power: i64) -> Option<i128> {
        let digits = [self.whole, self.fraction].concat();
        let places = i64::try_from(self.fraction.len()).ok()?;
        let shift = power.saturating_add(9).saturating_sub(places);
        let dropped = usize::try_from(shift.saturating_neg())
            .unwrap_or(0)
            .min(digits.len());
        let (kept, dropped) = digits.split_at(digits.len() - dropped);
        let kept = number(kept)?;
        if kept == 0 {
            return Some(rounding(dropped));
        }
        let scale = 10_i128.checked_pow(u32::try_from(shift.max(0)).ok()?)?;
        kept.checked_mul(scale)?.checked_add(rounding(dropped))
    }

    /// Returns the billionths times a power of two, which is at most 60. A result that is too large becomes
    /// the largest amount.
    fn times_binary(&self, power: u32) -> i128 {
        let unit = ONE << power;
        let whole = number(self.whole).and_then(|whole| whole.checked_mul(unit));
        let mut fraction = 0;
        let mut is_exact = true;
        for digit in self.fraction.bytes().rev() {
            let tenfold = i128::from(digit - b'0') * unit + fraction;
            is_exact &= tenfold % 10 == 0;
            fraction = tenfold / 10;
        }
        let fraction = fraction + i128::from(!is_exact);
        let amount = whole.and_then(|whole| whole.checked_add(fraction));
        amount.map_or(LARGEST_BINARY, |amount| amount.min(LARGEST_BINARY))
    }
}

fn leading_digits(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// Returns the value of digits; `None` if it is too large.
fn number(digits: &str) -> Option<i128> {
    if digits.is_empty() {
        Some(0)
    } else {
        digits.parse().ok()
    }
}

/// Returns what to add for dropped digits.
fn rounding(dropped: &str) -> i128 {
    i128::from(dropped.bytes().any(|digit| digit != b'0'))
}

fn decimal_power(suffix: &str) -> Option<i64> {
    let known = DECIMAL.iter().find(|(name, _)| *name == suffix);
    known.map(|(_, power)| *power)
}

fn binary_power(suffix: &str) -> Option<u32> {
    (1..)
        .zip(BINARY)
        .find(|(_, name)| *name == suffix)
        .map(|(place, _)| place * 10)
}

/// Returns the power of ten of `e3`. An exponent out of range saturates.
fn exponent(suffix: &str) -> Option<i64> {
    let power = suffix.strip_prefix(['e', 'E'])?;
    let (_, rest) = leading_digits(power.strip_prefix(['+', '-']).unwrap_or(power));
    if !rest.is_empty() || power.is_empty() || power.ends_with(['+', '-']) {
        return None;
    }
    let furthest = if power.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    Some(power.parse().unwrap_or(furthest))
}

#[cfg(test)]
mod tests;
