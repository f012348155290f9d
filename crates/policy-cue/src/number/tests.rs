use super::*;

fn number(text: &str) -> CueNumber {
    match text.strip_prefix('-') {
        Some(text) => {
            let number = parse_literal(text).unwrap();
            CueNumber {
                decimal: number.decimal.negated(),
                ..number
            }
        }
        None => parse_literal(text).unwrap(),
    }
}

#[test]
fn literals_are_parsed_as_in_cue() {
    for (text, said, is_integer) in [
        ("0", "0", true),
        ("1_000", "1000", true),
        ("0x1F", "31", true),
        ("0b101", "5", true),
        ("0o17", "15", true),
        ("1.50", "1.50", false),
        (".5", "0.5", false),
        ("5.", "5", false),
        ("1e3", "1E+3", false),
        ("1e-7", "1E-7", false),
        ("0.000001", "0.000001", false),
        ("1.5Gi", "1610612736", true),
        ("2K", "2000", true),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
            true,
        ),
    ] {
        let number = number(text);
        assert_eq!(
            (number.to_string().as_str(), number.is_integer),
            (said, is_integer),
            "{text}"
        );
    }
}

#[test]
fn invalid_literals_are_refused() {
    for text in [
        "08",
        "1.55Ki",
        "1_",
        "0x",
        "0xG",
        "1e",
        "1e100001",
        "1e1000000000",
        "0K",
    ] {
        assert!(parse_literal(text).is_err(), "{text}");
    }
}

#[test]
fn results_have_24_digits() {
    let third = number("1").divided_by(&number("3")).unwrap();
    assert_eq!(third.to_string(), "0.333333333333333333333333");
    let large = number("1234567890123456789012345").plus(&number("1")).unwrap();
    assert_eq!(large.to_string(), "1.23456789012345678901235E+24");
    assert!(large.is_integer);
}

#[test]
fn exact_quotients_have_no_excess_digits() {
    for (dividend, divisor, quotient) in [
        ("4", "2", "2"),
        ("1", "4", "0.25"),
        ("100", "10", "10"),
        ("1.20", "2", "0.60"),
        ("0", "7", "0"),
        ("2", "3", "0.666666666666666666666667"),
        ("-1", "8", "-0.125"),
        ("1e3", "2", "5E+2"),
    ] {
        let found = number(dividend).divided_by(&number(divisor)).unwrap();
        assert_eq!(found.to_string(), quotient, "{dividend} / {divisor}");
    }
    assert_eq!(
        number("1").divided_by(&number("0.0")).unwrap_err(),
        ArithmeticError::DivisionByZero
    );
}

#[test]
fn products_are_exact() {
    let product = number("500")
        .times(&number("0.001"))
        .unwrap()
        .times(&number("0.3"))
        .unwrap();
    assert_eq!(product.to_string(), "0.1500");
    let huge = number("1e99999").times(&number("1e99999"));
    assert_eq!(huge.unwrap_err(), ArithmeticError::OutOfRange);
}

#[test]
fn sums_of_very_different_numbers_are_rounded_once() {
    for (left, right, sum) in [
        ("1e90000", "1", "1.00000000000000000000000E+90000"),
        ("1", "-1e-90000", "1.00000000000000000000000"),
        ("1e90000", "-1", "1.00000000000000000000000E+90000"),
        (
            "1000000000000000000000000.5",
            "1e-90000",
            "1.00000000000000000000000E+24",
        ),
        (
            "100000000000000000000000.5",
            "1e-90000",
            "100000000000000000000001",
        ),
        (
            "100000000000000000000000.5",
            "-1e-90000",
            "100000000000000000000000",
        ),
        ("5", "0e-9", "5.000000000"),
    ] {
        let found = number(left).plus(&number(right)).unwrap();
        assert_eq!(found.to_string(), sum, "{left} + {right}");
        let found = number(right).plus(&number(left)).unwrap();
        assert_eq!(found.to_string(), sum, "{right} + {left}");
    }
}

#[test]
fn rounding_goes_away_from_zero_at_halves() {
    for (text, rounded) in [
        ("0.5", "1"),
        ("-0.5", "-1"),
        ("1.49", "1"),
        ("-2.5", "-3"),
        ("3e2", "300"),
    ] {
        let found = number(text).decimal.to_integral(RoundingMode::HalfUp).unwrap();
        assert_eq!(found.to_string(), rounded, "{text}");
    }
    assert_eq!(
        number("2.5")
            .decimal
            .to_integral(RoundingMode::HalfEven)
            .unwrap()
            .to_string(),
        "2"
    );
    assert_eq!(
        number("-1.5")
            .decimal
            .to_integral(RoundingMode::Floor)
            .unwrap()
            .to_string(),
        "-2"
    );
    assert_eq!(
        number("-1.5")
            .decimal
            .to_integral(RoundingMode::Ceiling)
            .unwrap()
            .to_string(),
        "-1"
    );
}

#[test]
fn equal_values_with_different_digits_are_equal() {
    assert_eq!(number("1.0").compare(&number("1")), Ordering::Equal);
    assert_eq!(number("-0.0").compare(&number("0")), Ordering::Equal);
    assert_eq!(
        number("1e100000").compare(&number("1e-100000")),
        Ordering::Greater
    );
    assert_eq!(number("-2").compare(&number("1")), Ordering::Less);
    assert_eq!(number("0.10").compare(&number("0.09")), Ordering::Greater);
}

#[test]
fn whole_numbers_become_json_integers() {
    assert_eq!(number("536870912.0").to_json().unwrap().to_string(), "536870912");
    assert_eq!(number("-3").to_json().unwrap().to_string(), "-3");
    assert_eq!(
        number("18446744073709551615").to_json().unwrap().to_string(),
        "18446744073709551615"
    );
    assert_eq!(number("0.5").to_json().unwrap().to_string(), "0.5");
    assert!(number("1e400").to_json().is_none());
}
