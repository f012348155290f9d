//! Validation of channels.

use super::{package, problems, read};

fn messages(entries: &[(&str, &str)]) -> Vec<String> {
    problems(&read(&[("widgets.yaml", &package(entries))]))
}

#[test]
fn a_valid_channel_has_one_head() {
    let text = package(&[
        ("1.0.0", ""),
        ("1.1.0", "replaces: widgets.v1.0.0"),
        ("1.1.1", "replaces: widgets.v1.0.0"),
        ("1.2.0", "replaces: widgets.v1.1.1, skips: [widgets.v1.1.0]"),
    ]);
    let read = read(&[("widgets.yaml", &text)]);
    assert_eq!(problems(&read), [""; 0]);
    let package = &read.catalog.packages["widgets"];
    assert_eq!(package.channels["stable"].heads(), ["widgets.v1.2.0"]);
    let newest: Vec<_> = package
        .newest_first("stable")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        newest,
        [
            "widgets.v1.2.0",
            "widgets.v1.1.1",
            "widgets.v1.1.0",
            "widgets.v1.0.0"
        ]
    );
}

#[test]
fn entries_may_replace_removed_bundles() {
    assert_eq!(
        messages(&[("1.1.0", "replaces: widgets.v1.0.0, skips: [widgets.v0.9.0]")]),
        [""; 0]
    );
}

#[test]
fn invalid_channels_are_reported() {
    let at = "widgets.yaml:3: package widgets: channel stable: ";
    for (entries, message) in [
        (
            &[("1.0.0", ""), ("1.1.0", "")][..],
            "there are several heads, which no other bundle replaces or skips: widgets.v1.0.0, widgets.v1.1.0",
        ),
        (
            &[
                ("1.0.0", "replaces: widgets.v1.1.0"),
                ("1.1.0", "replaces: widgets.v1.0.0"),
            ],
            "bundles replace each other in a cycle: widgets.v1.0.0, widgets.v1.1.0",
        ),
        (
            &[("1.0.0", "replaces: widgets.v1.0.0")],
            "bundles replace each other in a cycle: widgets.v1.0.0",
        ),
        (
            &[
                ("1.0.0", "skips: [widgets.v1.1.0]"),
                ("1.1.0", "replaces: widgets.v1.0.0"),
            ],
            "every bundle is replaced or skipped by another: none is the head",
        ),
        (
            &[
                ("1.0.0", "replaces: widgets.v0.9.0"),
                ("1.1.0", "skips: [widgets.v1.2.0]"),
                ("1.2.0", "replaces: widgets.v1.0.0"),
            ],
            "no chain of replacements from the head widgets.v1.1.0 leads to widgets.v1.0.0",
        ),
    ] {
        assert_eq!(messages(entries), [format!("{at}{message}")], "{entries:?}");
    }
}

#[test]
fn parts_of_a_package_are_required() {
    let channel = "schema: olm.channel\npackage: widgets\nname: stable\nentries: [{name: widgets.v1.0.0}]\n";
    assert_eq!(
        problems(&read(&[("a.yaml", channel)])),
        [
            "a.yaml:1: package widgets: channel stable: olm.bundle is missing or invalid for widgets.v1.0.0",
            "a.yaml:1: package widgets: olm.package is missing",
        ]
    );
    let stray = package(&[("1.0.0", "")]).replace(
        "entries: [{name: widgets.v1.0.0, }]",
        "entries: [{name: widgets.v2.0.0}]",
    );
    assert_eq!(
        problems(&read(&[("b.yaml", &stray)])),
        [
            "b.yaml:3: package widgets: channel stable: olm.bundle is missing or invalid for widgets.v2.0.0",
            "b.yaml:4: package widgets: the bundle widgets.v1.0.0 is in no channel",
        ]
    );
}
