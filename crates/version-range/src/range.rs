//! Version ranges of the annotation `olm.skipRange`. The syntax is that of `ParseRange` in `blang/semver`,
//! which OLM uses.
//!
//! ```text
//! range     = all *( "||" all )
//! all       = 1*condition                      every one must match
//! condition = [ "<" "<=" ">" ">=" "=" "==" "!" "!=" ] version       1.2.x stands for every 1.2
//! ```
//!
//! Beyond that, `X` and `*` are wildcards too, and versions are parsed as tolerantly as the version of a
//! bundle. `!=1.x` excludes all 1.x versions, whereas `ParseRange` turns it into a range that matches
//! nothing.

use super::Version;

/// A set of versions.
#[derive(Clone, Debug)]
pub struct VersionRange(Vec<Vec<Condition>>);

#[derive(Clone, Debug)]
struct Condition {
    operator: Operator,
    operand: RangeOperand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// The versions from `first` up to `end`, exclusive: one version, or all that a wildcard covers.
#[derive(Clone, Debug)]
enum RangeOperand {
    One(Version),
    Many {
        first: Version,
        /// `None`: every version.
        end: Option<Version>,
    },
}

impl VersionRange {
    /// Parses a range; `None` if the text is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        text.split("||").map(all).collect::<Option<_>>().map(Self)
    }

    /// Reports whether `version` is in the range.
    pub fn contains(&self, version: &Version) -> bool {
        self.0
            .iter()
            .any(|all| all.iter().all(|condition| condition.holds(version)))
    }
}

impl Condition {
    fn holds(&self, version: &Version) -> bool {
        let below = match &self.operand {
            RangeOperand::One(operand) | RangeOperand::Many { first: operand, .. } => version < operand,
        };
        let above = match &self.operand {
            RangeOperand::One(operand) => version > operand,
            RangeOperand::Many { end, .. } => end.as_ref().is_some_and(|end| version >= end),
        };
        match self.operator {
            Operator::Less => below,
            Operator::LessOrEqual => !above,
            Operator::Greater => above,
            Operator::GreaterOrEqual => !below,
            Operator::Equal => !below && !above,
            Operator::NotEqual => below || above,
        }
    }
}

impl RangeOperand {
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.trim_start_matches('v').split('.').collect();
        let is_wild = |part: &&str| matches!(*part, "x" | "X" | "*");
        let Some(wild) = parts.iter().position(is_wild) else {
            return Version::parse(text).map(Self::One);
        };
        if parts.len() > 3 || !parts[wild..].iter().all(is_wild) {
            return None;
        }
        let number = |index: usize| parts[index].parse::<u64>().ok();
        let (first, end) = match wild {
            0 => (Version::new(0, 0, 0), None),
            1 => {
                let major = number(0)?;
                (
                    Version::new(major, 0, 0),
                    Some(Version::new(major.checked_add(1)?, 0, 0)),
                )
            }
            _ => {
                let (major, minor) = (number(0)?, number(1)?);
                let end = Version::new(major, minor.checked_add(1)?, 0);
                (Version::new(major, minor, 0), Some(end))
            }
        };
        Some(Self::Many { first, end })
    }
}

/// Parses conditions that must all match; at least one.
fn all(text: &str) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (operators, after) = rest.split_at(rest.find(|c| !"<>=!".contains(c)).unwrap_or(rest.len()));
        let operator = match operators {
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "" | "=" | "==" => Operator::Equal,
            "!" | "!=" => Operator::NotEqual,
            _ => return None,
        };
        let after = after.trim_start();
        let end = after
            .find(|c: char| c.is_whitespace() || "<>=!".contains(c))
            .unwrap_or(after.len());
        let (operand, after) = after.split_at(end);
        conditions.push(Condition {
            operator,
            operand: RangeOperand::parse(operand)?,
        });
        rest = after.trim_start();
    }
    (!conditions.is_empty()).then_some(conditions)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_contain_the_expected_versions() {
        for (range, inside, outside) in [
            (">=1.0.0 <1.2.0", &["1.0.0", "1.1.9"][..], &["0.9.9", "1.2.0"][..]),
            (">= 1.0.0 < 1.2.0", &["1.0.0", "1.1.9"], &["0.9.9", "1.2.0"]),
            ("<1.0.0 || >=2.0.0", &["0.1.0", "2.0.0"], &["1.0.0", "1.9.9"]),
            (">1.0.0 !2.0.0", &["1.0.1", "3.0.0"], &["1.0.0", "2.0.0"]),
            (">1.0.0 !=2.x", &["1.0.1", "3.0.0"], &["2.0.0", "2.7.0"]),
            ("1.2.3", &["1.2.3"], &["1.2.4"]),
            ("1.2.x", &["1.2.0", "1.2.99"], &["1.3.0", "1.1.9"]),
            ("<=1.x", &["0.1.0", "1.99.0"], &["2.0.0"]),
            (">1.x", &["2.0.0"], &["1.99.0"]),
            ("<1.0.0", &["1.0.0-rc.1"], &["1.0.0"]),
            ("x", &["0.0.1", "9.9.9"], &[]),
        ] {
            let range = VersionRange::parse(range).unwrap();
            for (versions, expected) in [(inside, true), (outside, false)] {
                for version in versions {
                    let found = range.contains(&Version::parse(version).unwrap());
                    assert_eq!(found, expected, "{version} in {range:?}");
                }
            }
        }
    }

    #[test]
    fn an_invalid_range_is_rejected() {
        for wrong in [
            "",
            "||",
            ">=1.0.0 ||",
            "=<1.0.0",
            "1.x.3",
            ">",
            "a",
            "1.0.0 ,2.0.0",
        ] {
            assert!(VersionRange::parse(wrong).is_none(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[<>=!|x. 0-9a-z]{0,30}") {
            let version = Version::new(1, 2, 3);
            if let Some(range) = VersionRange::parse(&text) {
                range.contains(&version);
            }
        }

        #[test]
        fn every_version_is_in_a_range_or_its_complement(
            major in 0_u64..4, minor in 0_u64..4, at in 0_u64..4, wild in any::<bool>()
        ) {
            let operand = if wild { format!("{at}.x") } else { format!("{at}.2.0") };
            let version = Version::new(major, minor, 0);
            for (one, other) in [("<", ">="), (">", "<="), ("=", "!=")] {
                let holds = |operator: &str| {
                    VersionRange::parse(&format!("{operator}{operand}")).unwrap().contains(&version)
                };
                prop_assert_ne!(holds(one), holds(other));
            }
        }
    }
}
