//! Formats numbers as Lua does.

/// Formats a number like Karmada's Lua: integers with all digits, others with as many as necessary, in the
/// notation of Go's `fmt.Sprint`. C prints only the first 14 digits.
pub(super) fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the conversion is checked below")]
    let whole = number as i64;
    #[expect(clippy::cast_precision_loss, reason = "exact equality is intended")]
    if whole as f64 == number && whole != i64::MAX {
        return whole.to_string();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_all_digits() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (-1e15, "-1000000000000000"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1_234_567_890_123_456_768.0, "1234567890123456768"),
        ] {
            assert_eq!(number_text(number), expected);
        }
    }

    #[test]
    fn fractions_have_the_shortest_exact_digits() {
        for (number, expected) in [
            (1.5, "1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.3333333333333333"),
            (999_999.5, "999999.5"),
            (1_048_576.5, "1.0485765e+06"),
            (-1_234_567.25, "-1.23456725e+06"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (9_223_372_036_854_775_808.0, "9.223372036854776e+18"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(number_text(number), expected);
        }
    }
}
