//! Parses number literals, such as `0x1F`, `1_000` and `1.5Ki`.

use num_bigint::BigUint;

use super::{
    CueNumber, Decimal,
    decimal::{MOST_DIGITS, power_of_ten},
};

/// Suffixes that multiply a number.
const MULTIPLIERS: &[(&str, u64)] = &[
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
];

const PREFIXES: &[(&str, u32)] = &[("0x", 16), ("0X", 16), ("0b", 2), ("0o", 8)];

/// Parses a literal, or returns the problem.
pub(crate) fn parse_literal(text: &str) -> Result<CueNumber, String> {
    if text.len() > MOST_DIGITS {
        return Err(format!("a number has at most {MOST_DIGITS} digits"));
    }
    let wrong = || format!("{text:?} is not a number");
    if text.contains("__")
        || text.contains("_.")
        || text.contains("_e")
        || text.contains("_E")
        || text.ends_with('_')
    {
        return Err(format!(
            "{text:?} is not a number: \"_\" is allowed only between digits"
        ));
    }
    let digits: String = text.chars().filter(|character| *character != '_').collect();
    for (prefix, radix) in PREFIXES {
        if let Some(digits) = digits.strip_prefix(prefix) {
            let coefficient = BigUint::parse_bytes(digits.as_bytes(), *radix).ok_or_else(wrong)?;
            return Ok(CueNumber::integer(Decimal::new(false, coefficient, 0)));
        }
    }
    for (suffix, factor) in MULTIPLIERS {
        if let Some(digits) = digits.strip_suffix(suffix) {
            return multiplied(digits, *factor).ok_or_else(wrong);
        }
    }
    let is_integer = !digits.contains(['.', 'e', 'E']);
    if is_integer && digits.len() > 1 && digits.starts_with('0') {
        return Err(format!(
            "{text:?} is not a number: remove the zeros in front, or write 0o for octal"
        ));
    }
    let decimal = Decimal::parse(&digits).ok_or_else(|| {
        if digits.contains(['e', 'E']) {
            format!("{text:?} is out of range; the largest exponent is 100000")
        } else {
            wrong()
        }
    })?;
    Ok(CueNumber { decimal, is_integer })
}

/// `None` if the product is not an integer.
fn multiplied(digits: &str, factor: u64) -> Option<CueNumber> {
    // Leading zeros would mean octal, which has no factors.
    if digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.") || digits == "0" {
        return None;
    }
    let decimal = Decimal::parse(digits)?;
    if decimal.exponent > 0 {
        return None;
    }
    let product = &decimal.coefficient * factor;
    let scale = power_of_ten(decimal.exponent.unsigned_abs());
    let whole = &product / &scale;
    (&whole * scale == product).then(|| CueNumber::integer(Decimal::new(false, whole, 0)))
}
