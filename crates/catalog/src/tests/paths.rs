//! Upgrade paths.

use std::collections::BTreeSet;

use proptest::prelude::*;
use version_range::{Version, VersionConstraint, VersionRange};

use super::{package, read};
use crate::{
    CatalogChannel, CatalogPackage, ChannelEntry, EdgeReason, InstalledRelease, ResolutionError, UpgradePath,
    UpgradeRequest,
};

fn resolve(
    package: &CatalogPackage,
    installed: Option<&str>,
    version: Option<&str>,
) -> Result<UpgradePath, ResolutionError> {
    let name = installed.map(|version| format!("widgets.v{version}"));
    let constraint = version.map(|version| VersionConstraint::parse(version).unwrap());
    package.resolve(&UpgradeRequest {
        channel: None,
        version: constraint.as_ref(),
        installed: name
            .as_deref()
            .zip(installed)
            .map(|(name, version)| InstalledRelease {
                name,
                version: Version::parse(version).unwrap(),
            }),
    })
}

fn widgets(entries: &[(&str, &str)]) -> CatalogPackage {
    read(&[("widgets.yaml", &package(entries))])
        .catalog
        .packages
        .remove("widgets")
        .unwrap()
}

/// The versions along a path, or the error.
fn path(package: &CatalogPackage, installed: Option<&str>, version: Option<&str>) -> String {
    match resolve(package, installed, version) {
        Ok(path) => path
            .edges
            .iter()
            .map(|edge| edge.version.as_str())
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => error.to_string(),
    }
}

const CHAIN: &[(&str, &str)] = &[
    ("1.0.0", ""),
    ("1.1.0", "replaces: widgets.v1.0.0"),
    ("1.2.0", "replaces: widgets.v1.1.0"),
    ("1.3.0", "replaces: widgets.v1.2.0, skips: [widgets.v1.0.0]"),
    ("2.0.0", "replaces: widgets.v1.3.0, skipRange: '>=1.1.0 <1.2.0'"),
];

#[test]
fn the_shortest_path_ends_at_the_newest_accepted_version() {
    let package = widgets(CHAIN);
    for (installed, version, expected) in [
        (None, None, "2.0.0"),
        (None, Some("<2"), "1.3.0"),
        (Some("1.0.0"), None, "1.3.0 2.0.0"),
        (Some("1.0.0"), Some("1.3.x"), "1.3.0"),
        (Some("1.0.0"), Some("<1.3"), "1.1.0 1.2.0"),
        (Some("1.1.0"), None, "2.0.0"),
        (Some("1.1.0"), Some("<2"), "1.2.0 1.3.0"),
        (Some("1.1.5"), None, "2.0.0"),
        (Some("2.0.0"), None, ""),
        (Some("1.2.0"), Some("1.2"), ""),
        (Some("3.0.0"), Some(">=2"), ""),
        (
            Some("1.2.0"),
            Some("1.1"),
            "no path leads from widgets.v1.2.0 to a wanted version in channel stable of package widgets: only widgets.v2.0.0, \
             widgets.v1.3.0 can be reached; widgets.v1.1.0 replaces widgets.v1.0.0",
        ),
        (
            Some("0.9.0"),
            None,
            "no path leads from widgets.v0.9.0 to a wanted version in channel stable of package widgets: nothing can be reached; \
             widgets.v2.0.0 replaces widgets.v1.3.0, follows versions >=1.1.0 <1.2.0; widgets.v1.3.0 replaces widgets.v1.2.0, \
             skips widgets.v1.0.0; widgets.v1.2.0 replaces widgets.v1.1.0",
        ),
        (
            Some("1.0.0"),
            Some(">2"),
            "channel stable of package widgets has no version >2: it has 2.0.0, 1.3.0, 1.2.0, 1.1.0, 1.0.0",
        ),
    ] {
        assert_eq!(
            path(&package, installed, version),
            expected,
            "{installed:?} {version:?}"
        );
    }
}

#[test]
fn a_path_explains_each_step() {
    let package = widgets(CHAIN);
    let reasons = |installed, version| -> Vec<EdgeReason> {
        let path = resolve(&package, installed, version).unwrap();
        path.edges.into_iter().map(|edge| edge.reason).collect()
    };
    assert_eq!(reasons(None, None), [EdgeReason::Install]);
    assert_eq!(reasons(Some("1.0.0"), Some("1.3")), [EdgeReason::Skips]);
    assert_eq!(
        reasons(Some("1.0.0"), None),
        [EdgeReason::Skips, EdgeReason::Replaces]
    );
    assert_eq!(
        reasons(Some("1.1.5"), None),
        [EdgeReason::SkipRange(">=1.1.0 <1.2.0".to_owned())]
    );
}

#[test]
fn a_missing_channel_is_reported_with_the_existing_ones() {
    let request = UpgradeRequest {
        channel: Some("fast"),
        ..UpgradeRequest::default()
    };
    let error = widgets(CHAIN).resolve(&request).unwrap_err();
    assert_eq!(
        error.to_string(),
        "package widgets has no channel fast: it has stable"
    );
}

#[test]
fn deprecated_bundles_come_last() {
    let mut package = widgets(CHAIN);
    let deprecated = &mut package.deprecations.bundles;
    deprecated.insert("widgets.v2.0.0".to_owned(), "It leaks.".to_owned());
    assert_eq!(path(&package, None, None), "1.3.0");
    assert_eq!(path(&package, Some("1.0.0"), None), "1.3.0");
    let only = resolve(&package, Some("1.0.0"), Some("2")).unwrap();
    assert_eq!(only.edges[1].deprecated.as_deref(), Some("It leaks."));
}

#[test]
fn build_metadata_orders_equal_versions() {
    let package = widgets(&[("1.0.0+9", ""), ("1.0.0+10", "replaces: widgets.v1.0.0+9")]);
    assert_eq!(path(&package, None, None), "1.0.0+10");
    assert_eq!(path(&package, Some("1.0.0+9"), None), "1.0.0+10");
    assert_eq!(path(&package, None, Some("1.0.0+9")), "1.0.0+9");
}

/// Channels of up to 7 bundles with random predecessors.
fn channels() -> impl Strategy<Value = CatalogPackage> {
    let entry = (
        prop::option::of(0_usize..7),
        prop::collection::vec(0_usize..7, 0..2),
        prop::option::of((0_usize..7, 0_usize..7)),
    );
    (
        prop::collection::vec(entry, 1..7),
        prop::collection::btree_set(0_usize..7, 0..2),
    )
        .prop_map(|(entries, deprecated)| {
            let mut package = widgets(&[]);
            let mut channel = CatalogChannel::default();
            for (minor, (replaces, skips, range)) in entries.into_iter().enumerate() {
                let name = format!("widgets.v1.{minor}.0");
                let follows = ChannelEntry {
                    replaces: replaces.map(|minor| format!("widgets.v1.{minor}.0")),
                    skips: skips
                        .into_iter()
                        .map(|minor| format!("widgets.v1.{minor}.0"))
                        .collect(),
                    skip_range: range.map(|(from, to)| format!(">=1.{from}.0 <1.{to}.0")),
                };
                channel.entries.insert(name.clone(), follows);
                package.bundles.insert(
                    name,
                    crate::CatalogBundle {
                        version: format!("1.{minor}.0"),
                        ..crate::CatalogBundle::default()
                    },
                );
            }
            package.default_channel = "stable".to_owned();
            package.channels.insert("stable".to_owned(), channel);
            package.deprecations.bundles = deprecated
                .into_iter()
                .map(|minor| (format!("widgets.v1.{minor}.0"), "a".to_owned()))
                .collect();
            package
        })
}

/// Second implementation of OLM v1's rule, to compare with; excludes downgrades.
fn follows(package: &CatalogPackage, next: usize, before: usize) -> bool {
    let Some(entry) = package.channels["stable"]
        .entries
        .get(&format!("widgets.v1.{next}.0"))
    else {
        return false;
    };
    let name = format!("widgets.v1.{before}.0");
    let version = Version::parse(&format!("1.{before}.0")).unwrap();
    let in_range = entry
        .skip_range
        .as_ref()
        .is_some_and(|range| VersionRange::parse(range).unwrap().contains(&version));
    next > before && (entry.replaces.as_ref() == Some(&name) || entry.skips.contains(&name) || in_range)
}

proptest! {
    #[test]
    fn paths_are_shortest_and_allowed(
        package in channels(), installed in 0_usize..7, from in 0_usize..7, to in 0_usize..8
    ) {
        let minor = |version: &str| version[2..version.len() - 2].parse::<usize>().unwrap();
        let is_wanted = |minor: usize| (from..to).contains(&minor);
        let count = package.bundles.len();
        // Breadth-first search.
        let mut levels = vec![BTreeSet::from([installed])];
        for _ in 0..count {
            let last = &levels[levels.len() - 1];
            levels.push((0..count).filter(|next| last.iter().any(|before| follows(&package, *next, *before))).collect());
        }
        let is_reached = |minor: usize| levels.iter().position(|level| level.contains(&minor));
        let is_deprecated = |minor: &usize| package.deprecations.bundles.contains_key(&format!("widgets.v1.{minor}.0"));
        let goal = (0..count)
            .filter(|minor| is_wanted(*minor) && is_reached(*minor).is_some())
            .max_by_key(|minor| (!is_deprecated(minor), *minor));
        let range = format!(">=1.{from} <1.{to}");
        match resolve(&package, Some(&format!("1.{installed}.0")), Some(&range)) {
            Ok(path) => {
                let mut at = installed;
                for edge in &path.edges {
                    let next = minor(&edge.version);
                    prop_assert!(follows(&package, next, at), "{path:?}");
                    at = next;
                }
                prop_assert!(is_wanted(at), "{path:?}");
                if let Some(goal) = goal {
                    prop_assert_eq!(at, goal);
                    prop_assert_eq!(Some(path.edges.len()), is_reached(goal));
                }
            }
            Err(error) => prop_assert_eq!(goal, None, "{}", error),
        }
    }
}
