//! Durations in Go's syntax, as Kubernetes uses them: `2160h`, `1h30m`, `90s`.

use std::{borrow::Cow, fmt, str::FromStr};

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// A non-negative duration in Go's syntax, which has no days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(pub SignedDuration);

/// A text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a duration: use for example 2160h, 90m or 45s")]
pub struct ParseGoDurationError {
    text: String,
}

/// The units in nanoseconds; a unit comes before its prefixes.
const UNITS: [(&str, i128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl GoDuration {
    /// Returns a duration of `hours`.
    pub const fn from_hours(hours: i64) -> Self {
        Self(SignedDuration::from_hours(hours))
    }
}

impl FromStr for GoDuration {
    type Err = ParseGoDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self).ok_or_else(|| ParseGoDurationError {
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_nanos();
        if rest == 0 {
            return f.write_str("0s");
        }
        for unit in ["h", "m", "s", "ms", "us", "ns"] {
            let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                continue;
            };
            if rest >= *size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> Cow<'static, str> {
        "GoDuration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 32,
            "pattern": r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$",
        })
    }
}

/// Sums up numbers with units; a number may have a fraction.
fn parse(text: &str) -> Option<SignedDuration> {
    if text == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut rest = text;
    let mut total: i128 = 0;
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, next) = tail.split_at(end);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, *size)?)?;
        rest = next;
    }
    let seconds = i64::try_from(total / 1_000_000_000).ok()?;
    let nanoseconds = i32::try_from(total % 1_000_000_000).ok()?;
    Some(SignedDuration::new(seconds, nanoseconds))
}

/// Multiplies `number`, which may have a fraction, by `size`.
fn scaled(number: &str, size: i128) -> Option<i128> {
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(("", fraction)) => ("0", fraction),
        Some(parts) => parts,
        None => (number, ""),
    };
    let mut value = whole.parse::<i128>().ok()?.checked_mul(size)?;
    let mut place = size;
    for digit in fraction.chars() {
        place /= 10;
        value = value.checked_add(i128::from(digit.to_digit(10)?) * place)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_go_durations_are_parsed() {
        for (text, expected) in [
            ("2160h", SignedDuration::from_hours(2160)),
            ("1h30m", SignedDuration::from_mins(90)),
            ("1.5h", SignedDuration::from_mins(90)),
            ("1500ms", SignedDuration::from_millis(1500)),
            ("2m0.5s", SignedDuration::from_millis(120_500)),
            (".5s", SignedDuration::from_millis(500)),
            ("0", SignedDuration::ZERO),
            ("0s", SignedDuration::ZERO),
        ] {
            assert_eq!(text.parse(), Ok(GoDuration(expected)), "{text}");
        }
    }

    #[test]
    fn invalid_and_negative_durations_are_rejected() {
        for text in [
            "",
            "5",
            "h",
            "1d",
            "-1h",
            "1 h",
            ".h",
            "1.h",
            "1h1",
            "99999999999999999999h",
        ] {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printed_durations_are_parsed_back(nanoseconds in 0..i64::MAX) {
            let duration = GoDuration(SignedDuration::from_nanos(nanoseconds));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn parsing_never_panics(text in ".{0,40}") {
            let _ = text.parse::<GoDuration>();
        }
    }
}
