//! Decimal numbers in text.

/// A decimal number in the syntax of CUE and JSON. It is exact, without floating point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecimalText {
    is_negative: bool,
    /// Digits without leading zeros; empty for 0.
    whole: String,
    /// Digits without trailing zeros.
    fraction: String,
}

/// The maximum number of digits on either side of the point, more than any double needs.
const MOST_DIGITS: usize = 30;

impl DecimalText {
    /// Parses a number such as `-3`, `0.5`, `.5`, `+2.50` or `1e3`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (digits, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if !are_digits(whole) || !are_digits(fraction) || whole.len() + fraction.len() == 0 {
            return None;
        }
        let number = Self::from_parts(text.starts_with('-'), whole, fraction).shifted(exponent.parse().ok()?);
        (number.whole.len() <= MOST_DIGITS && number.fraction.len() <= MOST_DIGITS).then_some(number)
    }

    /// Divides by a hundred: 0.5 of 50.
    pub(super) fn percent(self) -> Self {
        self.shifted(-2)
    }

    /// Creates a number without redundant zeros.
    fn from_parts(is_negative: bool, whole: &str, fraction: &str) -> Self {
        let whole = whole.trim_start_matches('0').to_owned();
        let fraction = fraction.trim_end_matches('0').to_owned();
        Self {
            is_negative: is_negative && !(whole.is_empty() && fraction.is_empty()),
            whole,
            fraction,
        }
    }

    /// Multiplies by a power of ten.
    pub(super) fn shifted(self, power: i8) -> Self {
        let zeros = "0".repeat(power.unsigned_abs().into());
        let digits = if power < 0 {
            format!("{zeros}{}{}", self.whole, self.fraction)
        } else {
            format!("{}{}{zeros}", self.whole, self.fraction)
        };
        let point = if power < 0 {
            self.whole.len()
        } else {
            self.whole.len() + zeros.len()
        };
        let (whole, fraction) = digits.split_at(point);
        Self::from_parts(self.is_negative, whole, fraction)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    pub(super) fn is_between_zero_and_one(&self) -> bool {
        !self.is_negative && self.whole.is_empty() && !self.fraction.is_empty()
    }

    pub(super) fn literal(&self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        let whole = if self.whole.is_empty() { "0" } else { &self.whole };
        let point = if self.fraction.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{}", self.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Option<String> {
        DecimalText::parse(text).map(|number| number.literal())
    }

    #[test]
    fn numbers_are_formatted_as_in_json() {
        for (text, written) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("+007.50", "7.5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-3", "-3"),
            ("1e3", "1000"),
            ("-1.25E+1", "-12.5"),
            ("15e-3", "0.015"),
            ("0e99", "0"),
        ] {
            assert_eq!(literal(text).as_deref(), Some(written), "{text}");
        }
        for text in [
            "", ".", "-", "e3", "1e", "1e1.5", "1e99", "1e999", "0x1", "1_000", "inf", "NaN", " 1", "1,5",
            "1.2.3", "--1",
        ] {
            assert_eq!(literal(text), None, "{text}");
        }
        assert_eq!(literal(&"9".repeat(MOST_DIGITS + 1)), None);
    }

    #[test]
    fn a_percentage_is_a_number() {
        for (text, written) in [
            ("50", "0.5"),
            ("5", "0.05"),
            ("250", "2.5"),
            ("12.5", "0.125"),
            ("-1", "-0.01"),
        ] {
            let number = DecimalText::parse(text).unwrap().percent();
            assert_eq!(number.literal(), written, "{text}");
        }
    }
}
