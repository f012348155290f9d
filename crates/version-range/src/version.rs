//! Versions of bundles, parsed and ordered as OLM does.

use std::{cmp::Ordering, fmt};

/// A semantic version. Build metadata does not affect the order (Semantic Versioning 2.0.0, item 10).
#[derive(Clone, Debug)]
pub struct Version(semver::Version);

impl Version {
    /// Parses `text` as `ParseTolerant` of `blang/semver` does: a leading `v`, leading zeros and missing
    /// parts are allowed. `None` if it is not a version.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let mut numbers: Vec<&str> = numbers
            .split('.')
            .map(|number| match number.trim_start_matches('0') {
                "" if !number.is_empty() => "0",
                trimmed => trimmed,
            })
            .collect();
        while numbers.len() < 3 {
            numbers.push("0");
        }
        semver::Version::parse(&format!("{}{rest}", numbers.join(".")))
            .ok()
            .map(Self)
    }

    /// Returns the release of three numbers.
    pub(crate) fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self(semver::Version::new(major, minor, patch))
    }

    /// Returns the lowest prerelease of three numbers.
    pub(crate) fn before(major: u64, minor: u64, patch: u64) -> Self {
        let mut version = semver::Version::new(major, minor, patch);
        // The lowest identifier (Semantic Versioning 2.0.0, item 11.4).
        version.pre = semver::Prerelease::new("0").unwrap_or_default();
        Self(version)
    }

    /// Parses a complete version with build metadata; `None` for any other text.
    pub(crate) fn pinned_build(text: &str) -> Option<Self> {
        let version = semver::Version::parse(text).ok()?;
        (!version.build.is_empty()).then_some(Self(version))
    }

    /// Reports whether the version has a prerelease part, such as `-rc.1`.
    pub fn is_prerelease(&self) -> bool {
        !self.0.pre.is_empty()
    }

    /// Reports whether version and build metadata are equal.
    pub fn is_same_build(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Orders versions as OLM v1 does to find the newest of a catalog. Build metadata counts, since OLM v1
    /// stores the release of a registry+v1 bundle there.
    pub fn cmp_builds(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_parsed_tolerantly_and_ordered_by_precedence() {
        let ascending = [
            "0.9",
            "1.0.0-alpha",
            "1.0.0-rc.1",
            "v1",
            "1.0.1",
            "1.02.0",
            "1.10",
            "2",
        ];
        for pair in ascending.windows(2) {
            assert!(Version::parse(pair[0]) < Version::parse(pair[1]), "{pair:?}");
        }
        assert_eq!(Version::parse("1.0.0+a"), Version::parse("1.0.0+b"));
        for text in ["01.02.03", "1.2.3-rc.1+build", " 1.0.0 "] {
            assert!(Version::parse(text).is_some(), "{text}");
        }
        for wrong in ["", "v", "1..2", "1.2.3.4", "one", "1.x", "-1", "1.2.3-"] {
            assert!(Version::parse(wrong).is_none(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,30}") {
            if let Some(version) = Version::parse(&text) {
                prop_assert_eq!(Version::parse(&version.0.to_string()), Some(version));
            }
        }
    }
}
