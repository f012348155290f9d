//! Findings about CRDs as a whole and their versions, effects of exceptions, and malformed CRDs.

use super::*;
use crate::upgrade_safety::{Enforcement, Exception, UpgradeRule, compare_all};

/// Returns a CRD with these versions; those with a `+` are served.
fn with_versions(scope: &str, versions: &[(&str, &str)], stored: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, schema)| {
            json!({
                "name": name.trim_start_matches('+'), "served": name.starts_with('+'), "storage": false,
                "schema": {"openAPIV3Schema": document(schema)},
            })
        })
        .collect();
    let mut crd = crd("{}");
    crd["spec"]["scope"] = scope.into();
    crd["spec"]["versions"] = versions.into();
    crd["status"] = json!({"storedVersions": stored});
    crd
}

#[test]
fn crd_level_changes_are_reported() {
    let old = with_versions(
        "Namespaced",
        &[("+v1", "{}"), ("+v1beta1", "{}"), ("v1alpha1", "{}")],
        &["v1alpha1", "v1beta1"],
    );
    let new = with_versions("Cluster", &[("v1", "{}"), ("+v2", "{}")], &[]);
    assert_eq!(
        compared(&old, &new),
        [
            "widgets.example.com - - scope: scope changed : \"Namespaced\" -> \"Cluster\"",
            "widgets.example.com - - storedVersionRemoval: stored versions removed : [v1alpha1, v1beta1]",
            "widgets.example.com v1 - servedVersionRemoval: version no longer served : v1 (warning)",
            "widgets.example.com v1beta1 - servedVersionRemoval: served version removed : v1beta1 (warning)",
        ]
    );
}

#[test]
fn scope_group_and_kind_must_not_change() {
    for (field, pointer) in [
        ("group", "/spec/group"),
        ("names.kind", "/spec/names/kind"),
        ("names.plural", "/spec/names/plural"),
    ] {
        let old = crd("{}");
        let mut new = old.clone();
        let name = new.pointer_mut(pointer).unwrap();
        let before = name.take();
        *name = "another".into();
        assert_eq!(
            compared(&old, &new),
            [format!(
                "widgets.example.com - - unhandled: unhandled changes found (spec.{field} {before} -> \"another\")"
            )]
        );
    }
}

#[test]
fn stored_versions_default_to_the_storage_version() {
    let old = crd("{}");
    let mut new = crd("{}");
    new["spec"]["versions"][0]["name"] = "v2".into();
    assert_eq!(
        compared(&old, &new)[0],
        "widgets.example.com - - storedVersionRemoval: stored versions removed : [v1]"
    );
}

#[test]
fn version_facilities_must_not_change() {
    let with = |version: Value, preserve: bool| {
        let mut crd = crd("{}");
        crd["spec"]["preserveUnknownFields"] = preserve.into();
        for (name, value) in version.as_object().unwrap() {
            crd["spec"]["versions"][0][name] = value.clone();
        }
        crd
    };
    let all = json!({
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".a"}},
        "selectableFields": [{"jsonPath": ".a"}],
    });
    assert_eq!(
        compared(&with(all.clone(), true), &with(json!({}), false)),
        [
            "widgets.example.com - - unhandled: unhandled changes found (spec.preserveUnknownFields true -> false)",
            "widgets.example.com v1 - unhandled: unhandled changes found (selectableFields [{\"jsonPath\":\".a\"}] -> [])",
            "widgets.example.com v1 - unhandled: unhandled changes found (subresources.scale {\"specReplicasPath\":\".a\"} -> none)",
            "widgets.example.com v1 - unhandled: unhandled changes found (subresources.status {} -> none)",
        ]
    );
    assert_eq!(
        compared(&with(json!({}), false), &with(all, false)),
        ["widgets.example.com v1 - unhandled: unhandled changes found (subresources.status none -> {})"]
    );
}

#[test]
fn unconverted_served_versions_are_compared_from_old_to_new() {
    const WIDE: &str = "{properties: {a: {maxLength: 9}, b: {}}}";
    const NARROW: &str = "{properties: {a: {maxLength: 5}}}";
    let one = with_versions("Namespaced", &[("+v1beta1", WIDE), ("v1", NARROW)], &["v1beta1"]);
    let mut both = with_versions("Namespaced", &[("+v1", NARROW), ("+v1beta1", WIDE)], &["v1beta1"]);
    let expected = [
        "widgets.example.com v1beta1->v1 ^.a maxLength: maximum decreased : 9 -> 5",
        "widgets.example.com v1beta1->v1 ^.b existingFieldRemoval: removed field : v1.^.b",
    ];
    assert_eq!(compared(&one, &both), expected);
    // An existing difference does not get worse.
    assert_eq!(compared(&both, &both), [""; 0]);
    // A webhook converts.
    let unconverted = both.clone();
    both["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(compared(&one, &both), [""; 0]);
    // The converter is removed.
    assert_eq!(compared(&both, &unconverted), expected);
}

fn policy(lenient: bool, exceptions: &str) -> Policy {
    Policy {
        lenient,
        exceptions: Exception::parse("e", exceptions.as_bytes()).unwrap(),
    }
}

#[test]
fn exceptions_decide_by_version_and_field() {
    let old = crd("{properties: {a: {type: string}, b: {type: string}}}");
    let new = crd("{properties: {a: {type: integer}}}");
    let found = |policy: &Policy| compare("widgets.example.com", &old, &new, policy);
    let enforcements = |exceptions: &str| -> Vec<(UpgradeRule, Enforcement)> {
        found(&policy(false, exceptions))
            .iter()
            .map(|finding| (finding.rule, finding.enforcement))
            .collect()
    };
    use Enforcement::{Strict, Warn};
    use UpgradeRule::{ExistingFieldRemoval, Type};
    assert_eq!(
        enforcements("[]"),
        [(Type, Strict), (ExistingFieldRemoval, Strict)]
    );
    assert_eq!(
        enforcements("[{field: ^.a, enforcement: Warn}]"),
        [(Type, Warn), (ExistingFieldRemoval, Strict)]
    );
    assert_eq!(
        enforcements("[{field: ^.a, enforcement: Warn}, {rule: existingFieldRemoval, enforcement: None}]"),
        [(Type, Warn)]
    );
    assert_eq!(enforcements("[{field: ^, version: v1, enforcement: None}]"), []);
    // An exception without criteria matches nothing.
    let of_nothing = Policy {
        lenient: false,
        exceptions: vec![Exception {
            crd: None,
            version: None,
            field: None,
            rule: None,
            enforcement: Enforcement::None,
        }],
    };
    assert_eq!(found(&of_nothing).len(), 2);
    assert_eq!(
        lines(&found(&policy(true, "[{rule: type, enforcement: Warn}]"))),
        ["widgets.example.com v1 ^.a type: type changed : \"string\" -> \"integer\" (warning)"]
    );
}

#[test]
fn documentation_changes_are_reported_only_on_request() {
    let old = crd("{description: a}");
    let new = crd("{description: b}");
    let found = compare(
        "widgets.example.com",
        &old,
        &new,
        &policy(false, "[{rule: description, enforcement: Warn}]"),
    );
    assert_eq!(
        lines(&found),
        ["widgets.example.com v1 ^ description: description changed : \"a\" -> \"b\" (warning)"]
    );
}

#[test]
fn removed_crds_are_reported_and_added_ones_are_not() {
    let only: Crds = [("widgets.example.com".to_owned(), crd("{}"))].into();
    let none = Crds::new();
    assert_eq!(
        lines(&compare_all(&only, &none, &strict())),
        ["widgets.example.com - - crdRemoval: the CustomResourceDefinition is removed"]
    );
    assert_eq!(compare_all(&none, &only, &strict()), []);
}
