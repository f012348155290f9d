//! Version ranges as users write them. The syntax is that of `NewConstraint` in `Masterminds/semver` v3,
//! which OLM v1 uses.
//!
//! ```text
//! constraint = all *( "||" all )
//! all        = term *( ( space / "," ) term )      every one must match
//! term       = [ operator ] operand / operand " - " operand
//! operator   = "=" "!=" "<" "<=" "=<" ">" ">=" "=>" "~" "~>" "^"
//! operand    = "*" or a version, of which parts may be missing or wild: 1.2, 1.2.x
//! ```
//!
//! Prereleases match only if another term of the same group names a prerelease. A lone version with build
//! metadata matches only that build (OLM v1, `spec.source.catalog.version`).
//!
//! Where `Masterminds/semver` deviates from its documentation, this module follows the documentation:
//! `~0.0.0` is below 0.1.0, and `*` is every version regardless of the operator, so that `!=*`, `<*` and `>*`
//! match nothing.

use super::Version;

/// A set of versions, in the notation of users.
#[derive(Clone, Debug)]
pub struct VersionConstraint {
    text: String,
    groups: Vec<Group>,
}

/// Why a text is not a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionConstraintError {
    /// The text exceeds a size limit.
    #[error("a version range has at most {LONGEST} characters and {GROUPS} parts between ||")]
    TooLong,
    /// A group begins or ends without a version.
    #[error("a version is missing in the version range {0:?}: write it as \">=1.2 <2\", for example")]
    Missing(String),
    /// The text before a version is not an operator.
    #[error("{0:?} is not an operator of version ranges: use =, !=, <, <=, >, >=, ~ or ^")]
    Operator(String),
    /// The operand is not a version.
    #[error("{0:?} is not a version, nor one with a wildcard as in 1.2.x")]
    Operand(String),
}

/// Terms that must all match.
#[derive(Clone, Debug)]
struct Group {
    terms: Vec<Term>,
    /// Whether a term names a prerelease.
    prereleases: bool,
}

#[derive(Clone, Debug)]
enum Term {
    Within(Interval),
    Outside(Interval),
    /// The version with exactly this build metadata.
    Build(Version),
}

/// The versions between two bounds.
#[derive(Clone, Debug, Default)]
struct Interval {
    first: Option<(Version, Edge)>,
    last: Option<(Version, Edge)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    In,
    Out,
}

/// A version whose trailing parts may be missing.
#[derive(Clone, Debug)]
struct Operand {
    /// Missing parts are zero.
    version: Version,
    parts: Vec<u64>,
}

/// The maximum number of characters, as in `Masterminds/semver`.
const LONGEST: usize = 512;

/// The maximum number of groups, as in `Masterminds/semver`.
const GROUPS: usize = 32;

impl VersionConstraint {
    /// Parses a constraint.
    ///
    /// # Errors
    ///
    /// The first part that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, VersionConstraintError> {
        if text.len() > LONGEST {
            return Err(VersionConstraintError::TooLong);
        }
        let groups: Vec<_> = match Version::pinned_build(text) {
            Some(version) => vec![Group {
                terms: vec![Term::Build(version)],
                prereleases: true,
            }],
            None => text.split("||").map(Group::parse).collect::<Result<_, _>>()?,
        };
        if groups.len() > GROUPS {
            return Err(VersionConstraintError::TooLong);
        }
        Ok(Self {
            text: text.to_owned(),
            groups,
        })
    }

    /// Reports whether `version` matches.
    pub fn contains(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| group.contains(version))
    }

    /// Returns the constraint as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Group {
    fn parse(text: &str) -> Result<Self, VersionConstraintError> {
        let missing = || VersionConstraintError::Missing(text.trim().to_owned());
        let mut group = Self {
            terms: Vec::new(),
            prereleases: false,
        };
        let mut rest = text.trim();
        loop {
            let (operator, after) = split(rest, |c| !"=!<>~^".contains(c));
            let (operand, after) = split(after.trim_start(), |c| c.is_whitespace() || c == ',');
            if operand.is_empty() {
                return Err(missing());
            }
            let operand = Operand::parse(operand)?;
            group.prereleases |= operand.version.is_prerelease();
            let next = after.trim_start();
            rest = match next.strip_prefix('-') {
                Some(after) if operator.is_empty() && after.starts_with(char::is_whitespace) => {
                    let (last, after) = split(after.trim_start(), |c| c.is_whitespace() || c == ',');
                    if last.is_empty() {
                        return Err(missing());
                    }
                    let last = Operand::parse(last)?;
                    group.prereleases |= last.version.is_prerelease();
                    group.terms.extend([term(">=", &operand)?, term("<=", &last)?]);
                    after.trim_start()
                }
                _ => {
                    group.terms.push(term(operator, &operand)?);
                    next
                }
            };
            rest = match rest.strip_prefix(',') {
                Some(after) => after.trim_start(),
                None if rest.is_empty() => return Ok(group),
                None => rest,
            };
        }
    }

    fn contains(&self, version: &Version) -> bool {
        (self.prereleases || !version.is_prerelease()) && self.terms.iter().all(|term| term.contains(version))
    }
}

impl Term {
    fn contains(&self, version: &Version) -> bool {
        match self {
            Self::Within(interval) => interval.contains(version),
            Self::Outside(interval) => !interval.contains(version),
            Self::Build(build) => build.is_same_build(version),
        }
    }
}

fn term(operator: &str, operand: &Operand) -> Result<Term, VersionConstraintError> {
    let at = || operand.version.clone();
    let within = |first, last| Ok(Term::Within(Interval { first, last }));
    // The end of all versions that begin with the given parts; for a complete version, of that version alone.
    let behind = || match operand.parts.len() {
        0 => None,
        3 => Some((at(), Edge::In)),
        parts => operand.end(parts - 1),
    };
    let every = operand.parts.is_empty();
    match operator {
        "" | "=" => within(Some((at(), Edge::In)), behind()),
        "!=" => Ok(Term::Outside(Interval {
            first: Some((at(), Edge::In)),
            last: behind(),
        })),
        ">=" | "=>" => within(Some((at(), Edge::In)), None),
        "<=" | "=<" => within(None, behind()),
        "<" => within(None, Some((at(), Edge::Out))),
        ">" if every => within(None, Some((at(), Edge::Out))),
        ">" => {
            let first = behind().map(|(last, edge)| match edge {
                Edge::In => (last, Edge::Out),
                Edge::Out => (last, Edge::In),
            });
            within(first, None)
        }
        "~" | "~>" => within(Some((at(), Edge::In)), operand.end(1)),
        "^" => within(
            Some((at(), Edge::In)),
            operand.end(operand.parts.iter().position(|part| *part > 0).unwrap_or(2)),
        ),
        _ => Err(VersionConstraintError::Operator(operator.to_owned())),
    }
}

impl Interval {
    fn contains(&self, version: &Version) -> bool {
        let starts = self.first.as_ref().is_none_or(|(first, edge)| match edge {
            Edge::In => version >= first,
            Edge::Out => version > first,
        });
        let ends = self.last.as_ref().is_none_or(|(last, edge)| match edge {
            Edge::In => version <= last,
            Edge::Out => version < last,
        });
        starts && ends
    }
}

impl Operand {
    fn parse(text: &str) -> Result<Self, VersionConstraintError> {
        let wrong = || VersionConstraintError::Operand(text.to_owned());
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (numbers, suffix) = split(bare, |c| c == '-' || c == '+');
        let mut parts = Vec::new();
        let mut is_wild = false;
        let mut count = 0;
        for part in numbers.split('.') {
            count += 1;
            match part {
                "x" | "X" | "*" => is_wild = true,
                // Parts after a wildcard are not validated.
                _ if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) => {
                    return Err(wrong());
                }
                _ if is_wild => {}
                part => parts.push(part.parse().map_err(|_| wrong())?),
            }
        }
        if count > 3 {
            return Err(wrong());
        }
        let zeros = [parts.as_slice(), &[0; 3]].concat();
        let written = format!("{}.{}.{}{suffix}", zeros[0], zeros[1], zeros[2]);
        let version = Version::parse(&written).ok_or_else(wrong)?;
        Ok(Self { version, parts })
    }

    /// Returns the bound before the first version, prereleases included, whose part number `part` is one
    /// higher. If that part is missing, the last given part counts.
    fn end(&self, part: usize) -> Option<(Version, Edge)> {
        let part = part.min(self.parts.len().checked_sub(1)?);
        let mut numbers = [0; 3];
        numbers[..=part].copy_from_slice(&self.parts[..=part]);
        // No version exceeds the largest number.
        numbers[part] = numbers[part].checked_add(1)?;
        let [major, minor, patch] = numbers;
        Some((Version::before(major, minor, patch), Edge::Out))
    }
}

/// Splits `text` before the first character that matches `ends`.
fn split(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Results of `Masterminds/semver` v3.5.0 for each constraint: the matching versions, or `null` if it
    /// rejects the constraint. `tests/vectors/main.go` wrote the file.
    const VECTORS: &str = include_str!("../tests/vectors/constraints.json");

    #[test]
    fn constraints_match_as_in_masterminds_semver() {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        let versions: Vec<&str> = vectors["versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|version| version.as_str().unwrap())
            .collect();
        let mut wrong = Vec::new();
        let constraints = vectors["constraints"].as_object().unwrap();
        assert!(constraints.len() > 100);
        for (text, expected) in constraints {
            let held = VersionConstraint::parse(text).ok().map(|constraint| {
                let holds = |text: &&&str| constraint.contains(&Version::parse(text).unwrap());
                versions.iter().filter(holds).copied().collect::<Vec<_>>()
            });
            let held = serde_json::to_value(held).unwrap();
            if held != *expected {
                wrong.push(format!("{text:?}: {held} is not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn documented_behaviour_of_masterminds_semver_wins() {
        let holds = |constraint: &str, version: &str| {
            VersionConstraint::parse(constraint)
                .unwrap()
                .contains(&Version::parse(version).unwrap())
        };
        assert!(holds("~0.0.0", "0.0.9"));
        assert!(!holds("~0.0.0", "0.1.0"));
        for (constraint, expected) in [
            ("*", true),
            ("^*", true),
            ("<=*", true),
            (">=x", true),
            ("!=*", false),
            ("<*", false),
            (">*", false),
        ] {
            assert_eq!(holds(constraint, "1.2.3"), expected, "{constraint}");
        }
    }

    #[test]
    fn a_lone_build_matches_only_that_build() {
        let constraint = VersionConstraint::parse("1.2.3+1").unwrap();
        for (version, expected) in [("1.2.3+1", true), ("1.2.3+2", false), ("1.2.3", false)] {
            assert_eq!(constraint.contains(&Version::parse(version).unwrap()), expected);
        }
        let constraint = VersionConstraint::parse("1.2.3").unwrap();
        assert!(constraint.contains(&Version::parse("1.2.3+2").unwrap()));
    }

    #[test]
    fn an_error_names_the_invalid_part() {
        for (text, message) in [
            ("", "a version is missing in the version range \"\""),
            (">=1.2 ||", "a version is missing"),
            ("<>1", "\"<>\" is not an operator"),
            ("1.2.x.4", "\"1.2.x.4\" is not a version"),
            (">=latest", "\"latest\" is not a version"),
        ] {
            let error = VersionConstraint::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(VersionConstraint::parse(&"1 ||".repeat(200)).is_err());
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[<>=!~^|x*., 0-9a-z+-]{0,30}") {
            if let Ok(constraint) = VersionConstraint::parse(&text) {
                constraint.contains(&Version::new(1, 2, 3));
            }
        }

        #[test]
        fn every_release_matches_a_constraint_or_its_complement(
            major in 0_u64..4, minor in 0_u64..4, patch in 0_u64..4, operand in "[0-3](\\.[0-3](\\.[0-3])?)?"
        ) {
            let version = Version::new(major, minor, patch);
            for (one, other) in [("<", ">="), (">", "<="), ("=", "!=")] {
                let holds = |operator: &str| {
                    VersionConstraint::parse(&format!("{operator}{operand}")).unwrap().contains(&version)
                };
                prop_assert_ne!(holds(one), holds(other));
            }
        }
    }
}
