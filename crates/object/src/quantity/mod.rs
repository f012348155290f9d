//! Quantities of resources: `500m`, `1Gi`, `1e3`.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::{Add, AddAssign},
    str::FromStr,
};

/// An amount of a resource, down to a billionth, with the notation in which it was written. `resource.Quantity` of
/// `k8s.io/apimachinery`.
///
/// Quantities of the same amount are equal, whatever their notation.
///
/// # Guarantees
///
/// - What is finer than a billionth is rounded away from zero: who asks for a little gets a little.
/// - What is written with a binary suffix is at most 2^63-1.
/// - A sum that is too large is as large as can be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    billionths: i128,
    notation: Notation,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It is written otherwise.
    #[error("{0:?} is not a quantity: use for example 500m, 2, 1Gi or 1e3")]
    Syntax(
        /// What is written.
        String,
    ),
    /// It is more than 10^29.
    #[error("{0:?} is too large for a quantity")]
    TooLarge(
        /// What is written.
        String,
    ),
}

/// How a quantity is written.
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

/// A number before it has a value.
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

/// The binary suffixes, each 1024 times the one before.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const ONE: i128 = 1_000_000_000;

/// The most that is written with a binary suffix: 2^63-1.
const LARGEST_BINARY: i128 = (i64::MAX as i128) * ONE;

// === impl Quantity ===

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self {
        billionths: 0,
        notation: Notation::Decimal,
    };

    /// A thousandth, the smallest part of a CPU that is counted.
    pub const MILLI: Self = Self {
        billionths: ONE / 1000,
        notation: Notation::Decimal,
    };

    /// One of what is only counted whole.
    pub const ONE: Self = Self {
        billionths: ONE,
        notation: Notation::Decimal,
    };

    /// Reads a quantity.
    ///
    /// # Errors
    ///
    /// When the text is no quantity, or one that is too large.
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

    /// The amount times a factor, what is finer than a billionth rounded away from zero. What is too large is as large as can be.
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

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.billionths == 0
    }

    /// The multiple of `unit` that is next to it, away from zero.
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

    /// The same amount, printed as `5k`.
    #[must_use]
    pub fn in_decimal(self) -> Self {
        Self {
            notation: Notation::Decimal,
            ..self
        }
    }

    /// The same amount, printed as `5Ki`.
    #[must_use]
    pub fn in_binary(self) -> Self {
        Self {
            notation: Notation::Binary,
            ..self
        }
    }

    /// As close to it as a float is.
    pub fn to_f64(self) -> f64 {
        if self.billionths % ONE == 0 {
            return (self.billionths / ONE) as f64;
        }
        self.billionths as f64 / ONE as f64
    }

    /// The whole number of a binary suffix and its place among them, where nothing is lost by that.
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

    /// The whole number and the largest power of ten, of a multiple of three, that it is without a fraction.
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

/// The canonical form: no fraction, the largest suffix that allows it.
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

/// In the notation of the first that is something.
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

// === impl Digits ===

impl<'a> Digits<'a> {
    /// Takes a number from the front of `text`, which may have a sign and a fraction, and has a digit.
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

    /// So many billionths, times that power of ten. `None` where it is too large.
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

    /// So many billionths, times that power of two, which is at most 60. What is too large is what is largest.
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

/// The value of digits; `None` where it is too large.
fn number(digits: &str) -> Option<i128> {
    if digits.is_empty() {
        Some(0)
    } else {
        digits.parse().ok()
    }
}

/// What is added for digits that are dropped.
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

/// The power of ten that is written as `e3`. One that no number has is as far from zero as can be.
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
