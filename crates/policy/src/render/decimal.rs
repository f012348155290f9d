//! Decimal numbers in text.

/// A decimal number as CUE and JSON write it. It is not changed by a computer's idea of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecimalText {
    is_negative: bool,
    /// Digits without leading zeros; empty for 0.
    whole: String,
    /// Digits without trailing zeros.
    fraction: String,
}

/// The most digits before or behind the point. It is more than any exact number of a computer needs.
const MOST_DIGITS: usize = 30;

// === impl DecimalText ===

impl DecimalText {
    /// Reads a number such as `-3`, `0.5`, `.5` or `+2.50`. Exponents are not read.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let is_digits =
            |digits: &str| digits.len() <= MOST_DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() == 0 {
            return None;
        }
        let whole = whole.trim_start_matches('0').to_owned();
        let fraction = fraction.trim_end_matches('0').to_owned();
        Some(Self {
            is_negative: text.starts_with('-') && !(whole.is_empty() && fraction.is_empty()),
            whole,
            fraction,
        })
    }

    /// So many hundredths of it: 0.5 of 50.
    pub(super) fn percent(self) -> Self {
        let digits = format!("{:0>2}", self.whole);
        let (whole, hundredths) = digits.split_at(digits.len() - 2);
        let fraction = format!("{hundredths}{}", self.fraction);
        Self {
            is_negative: self.is_negative,
            whole: whole.to_owned(),
            fraction: fraction.trim_end_matches('0').to_owned(),
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// Whether it is above 0 and below 1.
    pub(super) fn is_part(&self) -> bool {
        !self.is_negative && self.whole.is_empty() && !self.fraction.is_empty()
    }

    /// The literal.
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
    fn numbers_are_written_as_json_has_them() {
        for (text, written) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("+007.50", "7.5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-3", "-3"),
        ] {
            assert_eq!(literal(text).as_deref(), Some(written), "{text}");
        }
        for text in [
            "", ".", "-", "1e3", "0x1", "1_000", "inf", "NaN", " 1", "1,5", "1.2.3", "--1",
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
