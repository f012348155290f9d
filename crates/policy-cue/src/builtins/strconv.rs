//! Package `strconv`.

use num_bigint::BigInt;

use crate::{
    builtins::{Arguments, BuiltinFunction},
    evaluate::{CueValue, Evaluated, EvaluationFailure, Severity},
    kind::KindSet,
    number::{CueNumber, Decimal},
};

const TEXT: &[KindSet] = &[KindSet::STRING];

pub(super) const FUNCTIONS: &[BuiltinFunction] = &[
    BuiltinFunction::new("strconv", "Atoi", TEXT, KindSet::INTEGER, |arguments| {
        let text = arguments.text(0)?;
        let number = parse_integer(text, 10);
        let number = number.and_then(|number| i64::try_from(number).ok());
        number
            .map(CueValue::integer)
            .ok_or_else(|| arguments.error("the string is not an integer of 64 bits"))
    }),
    BuiltinFunction::new(
        "strconv",
        "FormatBool",
        &[KindSet::BOOL],
        KindSet::STRING,
        |arguments| {
            let is_true = matches!(arguments.values[0], CueValue::Bool(true));
            arguments.new_text(if is_true { "true" } else { "false" })
        },
    ),
    BuiltinFunction::new(
        "strconv",
        "FormatInt",
        &[KindSet::INTEGER, KindSet::INTEGER],
        KindSet::STRING,
        |arguments| {
            let number = BigInt::from(arguments.integer(0)?);
            let base = base(arguments, 1)?;
            arguments.new_text(&number.to_str_radix(base))
        },
    ),
    BuiltinFunction::new(
        "strconv",
        "ParseBool",
        TEXT,
        KindSet::BOOL,
        |arguments| match arguments.text(0)? {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(CueValue::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(CueValue::Bool(false)),
            _ => Err(arguments.error("the string is neither true nor false")),
        },
    ),
    BuiltinFunction::new(
        "strconv",
        "ParseFloat",
        &[KindSet::STRING, KindSet::INTEGER],
        KindSet::NUMBER,
        parse_float,
    ),
    BuiltinFunction::new(
        "strconv",
        "ParseInt",
        &[KindSet::STRING, KindSet::INTEGER, KindSet::INTEGER],
        KindSet::INTEGER,
        parse_int,
    ),
];

fn base(arguments: &Arguments<'_, '_, '_>, index: usize) -> Evaluated<u32> {
    let base = arguments.integer(index)?;
    u32::try_from(base)
        .ok()
        .filter(|base| (2..=36).contains(base))
        .ok_or_else(|| arguments.error(format!("{base} is not a base from 2 to 36")))
}

/// Parses an optional sign and digits.
fn parse_integer(text: &str, base: u32) -> Option<i128> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return None;
    }
    i128::from_str_radix(text, base).ok()
}

fn parse_int<'a>(arguments: &mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>> {
    let text = arguments.text(0)?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match arguments.integer(1)? {
        0 => match lower.as_bytes() {
            [b'0', b'x', ..] => (16, &lower[2..]),
            [b'0', b'b', ..] => (2, &lower[2..]),
            [b'0', b'o', ..] => (8, &lower[2..]),
            [b'0', _, ..] => (8, &lower[1..]),
            _ => (10, lower.as_str()),
        },
        _ => (base(arguments, 1)?, lower.as_str()),
    };
    if digits.contains('_') && arguments.integer(1)? == 0 {
        let message = "strconv.ParseInt with underscores between digits";
        return Err(EvaluationFailure::new(
            Severity::Unsupported,
            arguments.evaluation.position(),
            message,
        ));
    }
    let bits = match arguments.integer(2)? {
        0 => 64,
        bits @ 1..=64 => bits,
        bits => return Err(arguments.error(format!("{bits} is not a number of bits from 0 to 64"))),
    };
    let half = 1_i128 << (bits - 1);
    let is_signed_twice = digits.starts_with(['+', '-']);
    let number = parse_integer(&format!("{sign}{digits}"), base).filter(|_| !is_signed_twice);
    number
        .filter(|number| (-half..half).contains(number))
        .and_then(|number| i64::try_from(number).ok())
        .map(CueValue::integer)
        .ok_or_else(|| {
            arguments.error(format!(
                "the string is not an integer of {bits} bits in base {base}"
            ))
        })
}

fn parse_float<'a>(arguments: &mut Arguments<'_, 'a, '_>) -> Evaluated<CueValue<'a>> {
    let text = arguments.text(0)?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if lower.starts_with("0x") || lower.contains('_') || matches!(lower.as_str(), "inf" | "infinity" | "nan")
    {
        let message = "strconv.ParseFloat supports only decimal numbers";
        return Err(EvaluationFailure::new(
            Severity::Unsupported,
            arguments.evaluation.position(),
            message,
        ));
    }
    let wrong = || arguments.error("the string is not a number");
    let is_decimal = |character: char| character.is_ascii_digit() || "+-.e".contains(character);
    if !lower.chars().all(is_decimal) || lower.starts_with('e') {
        return Err(wrong());
    }
    let number = if arguments.integer(1)? == 32 {
        f64::from(text.parse::<f32>().map_err(|_| wrong())?)
    } else {
        text.parse::<f64>().map_err(|_| wrong())?
    };
    if !number.is_finite() {
        return Err(arguments.error("the number is out of range"));
    }
    // Go's format: an exponent only if the plain form would be long.
    let printed = if number == 0.0 || (1e-4..1e21).contains(&number.abs()) {
        number.to_string()
    } else {
        format!("{number:e}")
    };
    let decimal = Decimal::parse(&printed).ok_or_else(wrong)?;
    Ok(CueValue::number(CueNumber::float(decimal)))
}
