//! Kubernetes' quantities (`k8s.io/apimachinery/pkg/api/resource`): exact, and in one canonical form.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::Add,
    str::FromStr,
};

/// An amount, such as `500m` or `1Gi`. What is less than a nano is rounded up; what has a binary suffix and is more than 2^63-1 is
/// that, and what is more than 10^29 is that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    /// In 10^-9.
    nanos: i128,
    format: Format,
}

/// A text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a quantity: it must be a number, and one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent"
)]
pub struct QuantityError(String);

/// How an amount is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Format {
    /// `1k`
    #[default]
    Decimal,
    /// `1Ki`
    Binary,
    /// `1e3`
    Exponent,
}

const UNIT: i128 = 1_000_000_000;

/// The most that a quantity with a binary suffix may be.
const MOST_BINARY: i128 = i64::MAX as i128 * UNIT;

/// The most that any quantity may be.
const MOST: i128 = 100_000_000_000_000_000_000_000_000_000_000_000_000;

/// The powers of 1000 from -3 on.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// The powers of 1024 from 1 on.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// More digits than a quantity can have.
const DIGITS: usize = 40;

// === impl Quantity ===

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    ///
    /// When it is not one.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        Self::read(text).ok_or_else(|| QuantityError(text.to_owned()))
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// About how much it is.
    #[expect(clippy::cast_precision_loss, reason = "it is about that")]
    pub fn to_f64(self) -> f64 {
        match self.nanos % UNIT {
            0 => (self.nanos / UNIT) as f64,
            _ => self.nanos as f64 / UNIT as f64,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (is_negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (format, scale) = scale(suffix)?;
        let most = match format {
            Format::Binary => MOST_BINARY,
            Format::Decimal | Format::Exponent => MOST,
        };
        let nanos = amount(whole, fraction, scale).min(most);
        let nanos = if is_negative { -nanos } else { nanos };
        Some(Self { nanos, format })
    }
}

/// By what a number is multiplied.
#[derive(Clone, Copy)]
enum Scale {
    PowerOf10(i64),
    PowerOf2(u32),
}

fn scale(suffix: &str) -> Option<(Format, Scale)> {
    if let Some(power) = BINARY.iter().position(|known| *known == suffix) {
        return Some((
            Format::Binary,
            Scale::PowerOf2(10 * (u32::try_from(power).ok()? + 1)),
        ));
    }
    if let Some(power) = DECIMAL.iter().position(|known| *known == suffix) {
        return Some((
            Format::Decimal,
            Scale::PowerOf10(3 * (i64::try_from(power).ok()? - 3)),
        ));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // One that is no number of 32 bits is none of Kubernetes', either.
    Some((
        Format::Exponent,
        Scale::PowerOf10(exponent.parse::<i32>().ok()?.into()),
    ))
}

/// An amount in nanos, rounded up; larger ones than there may be are some larger one.
fn amount(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let digits: String = [whole, fraction].concat();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // The number is `digits` times 10^exponent.
    let mut exponent = -i64::try_from(fraction.len()).unwrap_or(i64::MAX) + 9;
    let mut factor = 1;
    match scale {
        Scale::PowerOf10(power) => exponent = exponent.saturating_add(power),
        Scale::PowerOf2(power) => factor = 1_i128 << power,
    }
    let kept = digits.len().min(DIGITS);
    let dropped = digits.len() - kept;
    exponent = exponent.saturating_add(i64::try_from(dropped).unwrap_or(i64::MAX));
    let is_rounded = digits[kept..].bytes().any(|digit| digit != b'0');
    scaled(&digits[..kept], exponent, factor, is_rounded)
}

fn scaled(digits: &str, exponent: i64, factor: i128, mut is_rounded: bool) -> i128 {
    let mut digits = digits;
    // What 128 bits do not hold is more than there may be, or has digits behind the nanos.
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    if length.saturating_add(exponent) > 38 {
        return MOST;
    }
    let mut left = exponent;
    if length + exponent < 0 {
        return 1;
    }
    while left < 0 && digits.len() > 38 {
        is_rounded |= !digits.ends_with('0');
        digits = &digits[..digits.len() - 1];
        left += 1;
    }
    let Some(mut value) = digits
        .parse::<i128>()
        .ok()
        .and_then(|value| value.checked_mul(factor))
    else {
        // The factor is that of a binary suffix: divided first, it fits.
        return divided_first(digits, left, factor, is_rounded);
    };
    if left >= 0 {
        let power = u32::try_from(left)
            .ok()
            .and_then(|left| 10_i128.checked_pow(left));
        return power.and_then(|power| value.checked_mul(power)).unwrap_or(MOST);
    }
    let power = u32::try_from(-left)
        .ok()
        .and_then(|left| 10_i128.checked_pow(left));
    let Some(power) = power else { return 1 };
    is_rounded |= value % power != 0;
    value /= power;
    value + i128::from(is_rounded)
}

fn divided_first(digits: &str, exponent: i64, factor: i128, is_rounded: bool) -> i128 {
    let value = digits.parse::<i128>().unwrap_or(i128::MAX);
    let power = u32::try_from(-exponent)
        .ok()
        .and_then(|power| 10_i128.checked_pow(power));
    let Some(power) = power else { return MOST };
    let divided = (value / power).checked_mul(factor);
    divided.map_or(MOST, |divided| {
        divided + i128::from(is_rounded || value % power != 0)
    })
}

/// The canonical form: no fraction, and the largest suffix that allows that.
impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return formatter.write_str("0");
        }
        let units = self.nanos / UNIT;
        let is_binary = self.format == Format::Binary && self.nanos % UNIT == 0 && units.abs() >= 1024;
        if is_binary {
            let (mut number, mut power) = (units, 0);
            while number % 1024 == 0 && power < BINARY.len() {
                (number, power) = (number / 1024, power + 1);
            }
            let suffix = power.checked_sub(1).map_or("", |power| BINARY[power]);
            return write!(formatter, "{number}{suffix}");
        }
        let (mut number, mut power) = (self.nanos, 0);
        while number % 1000 == 0 && power + 1 < DECIMAL.len() {
            (number, power) = (number / 1000, power + 1);
        }
        match (self.format, power) {
            (Format::Exponent, 3) => write!(formatter, "{number}"),
            (Format::Exponent, power) => write!(formatter, "{number}e{}", 3 * power as i64 - 9),
            _ => write!(formatter, "{number}{}", DECIMAL[power]),
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The format is that of the first, unless that is nothing.
impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            nanos: (self.nanos + other.nanos).clamp(-MOST, MOST),
            format: if self.is_zero() { other.format } else { self.format },
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_have_one_form() {
        for (text, expected) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("-0", "0"),
            ("1", "1"),
            ("+1", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("100000", "100k"),
            ("1000m", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("5.", "5"),
            ("1.5k", "1500"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("1.5Ki", "1536"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("1024", "1024"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e-3", "12e-3"),
            ("100e2", "10e3"),
            ("1E", "1E"),
            ("123456n", "123456n"),
            ("0.0000000001", "1n"),
            ("-0.5", "-500m"),
            ("1Ei", "1Ei"),
            ("100Ei", "9223372036854775807"),
            ("1e999999999", "100000000000e18"),
            ("1e-999999999", "1e-9"),
            ("9223372036854775808", "9223372036854775808"),
            ("9223372036854775808Ki", "9223372036854775807"),
            (
                "99999999999999999999999999999999999999999999999999",
                "100000000000E",
            ),
            ("0.00000000000000000000000000000000000000000000000001Gi", "1n"),
        ] {
            assert_eq!(
                Quantity::parse(text).map(|quantity| quantity.to_string()),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in [
            "",
            " ",
            "a",
            ".",
            "-",
            "1.2.3",
            "1 Gi",
            "1gi",
            "1K",
            "1e",
            "1e+",
            "1ee3",
            "1e99999999999",
            "0x1",
            "--1",
            "1Gi ",
        ] {
            assert!(Quantity::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_sum_has_the_format_of_the_first_that_is_something() {
        for (one, other, expected) in [
            ("1Gi", "1Gi", "2Gi"),
            ("1Gi", "1G", "2073741824"),
            ("0", "1Gi", "1Gi"),
            ("500m", "500m", "1"),
            ("1e3", "1k", "2e3"),
            ("100Ei", "1", "8Ei"),
        ] {
            let sum = Quantity::parse(one).unwrap() + Quantity::parse(other).unwrap();
            assert_eq!(sum.to_string(), expected, "{one} + {other}");
        }
    }

    #[test]
    fn amounts_are_compared_whatever_their_form() {
        assert_eq!(Quantity::parse("1024Mi"), Quantity::parse("1073741824"));
        assert!(Quantity::parse("1G").unwrap() < Quantity::parse("1Gi").unwrap());
        assert!((Quantity::parse("1500m").unwrap().to_f64() - 1.5).abs() < f64::EPSILON);
    }

    proptest! {
        #[test]
        fn the_form_is_read_as_what_it_says(text in "-?[0-9]{0,45}(\\.[0-9]{0,45})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,9})?") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let shown = quantity.to_string();
                let again = Quantity::parse(&shown).unwrap();
                prop_assert_eq!(again, quantity);
                prop_assert_eq!(again.to_string(), shown);
            }
        }

        #[test]
        fn nothing_else_is_a_panic(text in "\\PC{0,30}") {
            let _ = Quantity::parse(&text);
        }
    }
}
