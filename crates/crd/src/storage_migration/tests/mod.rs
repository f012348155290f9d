mod model;
mod world;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{migration::*, *};

/// How long an API server may take to observe a change.
const SETTLE: SignedDuration = SignedDuration::from_secs(10);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn crd(versions: &[(&str, bool, bool)], stored: &[&str]) -> Value {
    let versions: Vec<_> = versions
        .iter()
        .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}))
        .collect();
    json!({
        "metadata": {"name": "widgets.example.com", "uid": "u", "generation": 4, "resourceVersion": "90"},
        "spec": {"versions": versions}, "status": {"storedVersions": stored}
    })
}

fn moved() -> Value {
    crd(&[("v1", true, false), ("v2", true, true)], &["v1", "v2"])
}

fn begun(live: &Value, second: i64) -> Migration {
    match next_step(live, None, None, at(second), SETTLE) {
        MigrationStep::Begin(migration) => migration,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_crd_determines_whether_a_migration_is_needed() {
    let known = begun(&moved(), 0);
    for (live, expected) in [
        (crd(&[("v1", true, true)], &["v1"]), MigrationStep::Nothing),
        (
            crd(&[("v1", true, false), ("v2", true, true)], &["v2"]),
            MigrationStep::Nothing,
        ),
        (crd(&[("v1", true, true)], &[]), MigrationStep::Nothing),
        (crd(&[], &["v1"]), MigrationStep::Nothing),
        (
            crd(&[("v1", false, false), ("v2", false, true)], &["v1", "v2"]),
            MigrationStep::Serve,
        ),
    ] {
        assert_eq!(next_step(&live, None, None, at(0), SETTLE), expected, "{live}");
        assert_eq!(
            next_step(&live, Some(&known), None, at(0), SETTLE),
            expected,
            "{live}"
        );
    }
}

#[test]
fn it_settles_then_marks_then_rewrites() {
    let live = moved();
    let mut migration = begun(&live, 100);
    assert_eq!(
        (migration.crd.as_str(), migration.version.as_str()),
        ("widgets.example.com", "v2")
    );
    for (second, expected) in [
        (100, MigrationStep::Wait(SETTLE)),
        (107, MigrationStep::Wait(SignedDuration::from_secs(3))),
        (110, MigrationStep::Mark),
    ] {
        assert_eq!(
            next_step(&live, Some(&migration), None, at(second), SETTLE),
            expected
        );
    }
    migration.record_mark("120", None);
    assert_eq!(
        next_step(&live, Some(&migration), None, at(110), SETTLE),
        MigrationStep::Rewrite
    );
}

fn with(live: &Value, pointer: &str, value: Value) -> Value {
    let mut live = live.clone();
    *live.pointer_mut(pointer).unwrap() = value;
    live
}

#[test]
fn a_possible_storage_version_change_or_clock_jump_restarts_the_migration() {
    let live = moved();
    let mut migration = begun(&live, 100);
    migration.record_mark("120", None);
    let back = crd(&[("v1", true, true), ("v2", true, false)], &["v1", "v2"]);
    for other in [
        with(&live, "/metadata/generation", json!(6)),
        with(&live, "/metadata/uid", json!("other")),
        back,
    ] {
        let mut migration = migration.clone();
        migration.record_histories(&StorageVersionHistory::from_crd(&other));
        let next = next_step(&other, Some(&migration), None, at(200), SETTLE);
        assert!(matches!(next, MigrationStep::Begin(_)), "{next:?}");
    }
    assert!(matches!(
        next_step(&live, Some(&migration), None, at(99), SETTLE),
        MigrationStep::Begin(_)
    ));
    let status = with(&live, "/metadata/resourceVersion", json!("91"));
    assert_eq!(
        next_step(&status, Some(&migration), None, at(200), SETTLE),
        MigrationStep::Rewrite
    );
}

#[test]
fn crd_changes_that_keep_the_storage_version_do_not_restart_the_migration() {
    let live = moved();
    let at_generation = |generation: i64| with(&live, "/metadata/generation", json!(generation));
    let mut migration = begun(&live, 100);
    migration.record_mark("120", None);
    for (seen, last) in [(vec![], 5), (vec![6, 7, 8], 9), (vec![9, 10], 10)] {
        let live = at_generation(last);
        let next_of = |migration: &Migration| next_step(&live, Some(migration), None, at(200), SETTLE);
        assert!(
            matches!(next_of(&migration), MigrationStep::Begin(_)),
            "not followed"
        );
        assert!(migration.may_continue(&live));
        let seen = seen.iter().map(|generation| at_generation(*generation));
        let histories: Vec<_> = seen
            .chain([live.clone()])
            .filter_map(|seen| StorageVersionHistory::from_crd(&seen))
            .collect();
        migration.record_histories(&histories);
        assert_eq!(next_of(&migration), MigrationStep::Rewrite);
        assert_eq!(migration.generation, last);
    }
}

#[test]
fn no_rewrite_while_another_converter_is_active() {
    let converting = |address: &str, trust: &str, generation: i64| {
        let mut live = with(&moved(), "/metadata/generation", json!(generation));
        live["spec"]["conversion"] = json!({"strategy": "Webhook",
            "webhook": {"clientConfig": {"url": address, "caBundle": trust}}});
        live
    };
    let live = converting("https://ours", "A", 4);
    let mut migration = begun(&live, 100);
    migration.record_mark("120", None);
    let next_of = |live: &Value, desired: Option<&str>, migration: &Migration| {
        let mut migration = migration.clone();
        migration.record_histories(&StorageVersionHistory::from_crd(live));
        next_step(live, Some(&migration), desired, at(200), SETTLE)
    };
    let other_trust = converting("https://ours", "B", 5);
    assert_eq!(next_of(&other_trust, None, &migration), MigrationStep::Rewrite);
    assert!(!migration.is_stopped_by(&other_trust));

    let ours = MigrationStep::Convert("https://ours".to_owned());
    let none = with(&moved(), "/metadata/generation", json!(5));
    for other in [converting("https://theirs", "A", 5), none] {
        assert_eq!(next_of(&other, None, &migration), ours);
        assert_eq!(next_of(&other, Some("https://ours"), &migration), ours);
        assert_eq!(
            next_step(&other, None, Some("https://ours"), at(200), SETTLE),
            ours
        );
        assert!(migration.is_stopped_by(&other));
        let before = with(&other, "/metadata/generation", json!(3));
        assert!(!migration.is_stopped_by(&before), "an outdated observation");
    }
    // The bundle has another converter, or an older operator wrote the status without a converter.
    let theirs = converting("https://theirs", "A", 5);
    assert_eq!(
        next_of(&theirs, Some("https://theirs"), &migration),
        MigrationStep::Rewrite
    );
    migration.converter = None;
    assert_eq!(next_of(&theirs, None, &migration), MigrationStep::Rewrite);
    migration.record_converter(&theirs);
    assert_eq!(migration.converter.as_deref(), Some("https://theirs"));
    assert_eq!(
        next_of(&live, None, &migration),
        MigrationStep::Convert("https://theirs".to_owned())
    );
}

#[test]
fn a_moved_storage_version_stops_a_page() {
    let migration = begun(&moved(), 100);
    let mut back = crd(&[("v1", true, true), ("v2", true, false)], &["v1", "v2"]);
    back["metadata"]["generation"] = json!(5);
    assert!(migration.is_stopped_by(&back));
    assert!(!migration.is_stopped_by(&moved()));
}

#[test]
fn the_status_of_an_older_operator_is_read() {
    let status = json!({"crd": "widgets.example.com", "version": "v2", "rewritten": 200, "total": 300, "uid": "u",
        "generation": 4, "since": "2026-11-21T10:00:00.000000Z", "resourceVersion": "120", "nextPage": "token"});
    let migration: Migration = serde_json::from_value(status.clone()).unwrap();
    assert_eq!((migration.rewritten, migration.converter.as_deref()), (200, None));
    assert_eq!(serde_json::to_value(&migration).unwrap(), status);
}

#[test]
fn objects_written_after_the_mark_are_not_rewritten() {
    let mut migration = begun(&moved(), 0);
    assert!(migration.must_rewrite("7"));
    migration.record_mark("99", None);
    for (written, expected) in [
        ("98", true),
        ("99", true),
        ("100", false),
        ("1000", false),
        ("", true),
        ("x", true),
    ] {
        assert_eq!(migration.must_rewrite(written), expected, "{written}");
    }
    migration.record_mark("opaque", None);
    assert!(migration.must_rewrite("100"));
}

#[test]
fn pages_are_counted() {
    let mut migration = begun(&moved(), 0);
    migration.finish_page(200, Some(50), Some("a".to_owned()));
    assert_eq!(
        migration.to_string(),
        "200 of 250 objects of widgets.example.com are stored as v2"
    );
    migration.finish_page(200, None, Some("b".to_owned()));
    assert_eq!((migration.rewritten, migration.total), (400, Some(250)));
    migration.set_next_page(Some("c".to_owned()));
    assert_eq!(
        (migration.rewritten, migration.next_page.as_deref()),
        (400, Some("c"))
    );
    migration.finish_page(3, None, None);
    assert_eq!((migration.rewritten, migration.total), (403, Some(403)));
    migration.set_next_page(None);
    assert_eq!((migration.rewritten, migration.next_page), (0, None));
}

#[test]
fn the_patch_applies_to_one_crd_state_only() {
    assert_eq!(
        stored_versions_patch(&moved()),
        json!({"metadata": {"resourceVersion": "90"}, "status": {"storedVersions": ["v2"]}})
    );
}
