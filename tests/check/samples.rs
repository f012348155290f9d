//! The sample bundles: valid ones have no problem, and each broken one has exactly one.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_bundle::{Bundle, check::check_files, rule, sources::directory};
use windlass_object::Rule;

use crate::{bundles, folders};

#[test]
fn samples_have_no_problems() {
    for name in folders(&bundles()) {
        if name == "broken" {
            continue;
        }
        let files = directory::load(&bundles().join(&name)).unwrap();
        assert_eq!(check_files(&files), [], "{name}");
        assert!(Bundle::parse(&files).is_ok());
    }
}

#[test]
fn each_broken_sample_breaks_only_the_rule_in_its_name() {
    for name in folders(&bundles().join("broken")) {
        let folder = bundles().join("broken").join(&name);
        let problems = check_files(&directory::load(&folder).unwrap());
        let rules: BTreeSet<&str> = problems.iter().map(|problem| problem.rule).collect();
        assert_eq!(rules, BTreeSet::from([name.as_str()]), "{problems:#?}");
    }
}

#[test]
fn every_rule_has_a_broken_sample() {
    let samples: BTreeSet<String> = folders(&bundles().join("broken")).into_iter().collect();
    let rules: BTreeSet<String> = rule::ALL
        .iter()
        // A folder in a repository cannot exceed the limits on folders.
        .filter(|rule| **rule != rule::SOURCE)
        .map(|rule| rule.name.to_owned())
        .collect();
    assert_eq!(samples, rules);
}

#[test]
fn problems_do_not_hide_each_other() {
    let mut files = directory::load(&bundles().join("sample.v1")).unwrap();
    let csv = files
        .get_mut("manifests/sample.clusterserviceversion.yaml")
        .unwrap();
    let text = String::from_utf8(csv.clone()).unwrap();
    let text = text
        .replace("containerPort: 443", "containerPort: '443'")
        .replacen("sideEffects: None", "sideEffects: Some", 1);
    *csv = text.into_bytes();
    let problems = check_files(&files);
    let count = |rule: Rule| {
        problems
            .iter()
            .filter(|problem| problem.rule == rule.name)
            .count()
    };
    assert_eq!(
        (count(rule::FIELD_TYPE), count(rule::WEBHOOK_SIDE_EFFECTS)),
        (3, 1),
        "{problems:#?}"
    );
}

/// Replaces the value at position `index` of `value`, counted depth first.
fn replace(value: &mut Value, index: &mut usize, with: &Value) {
    if *index == 0 {
        *value = with.clone();
    }
    *index = index.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, index, with)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, index, with)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn a_mutated_sample_never_panics(
        index in 0_usize..250,
        with in prop_oneof![
            Just(json!(null)), Just(json!(-1)), Just(json!("")), Just(json!("*")), Just(json!("\u{e9}".repeat(70))),
            Just(json!([])), Just(json!({})), Just(json!([[]])), Just(json!(true)), Just(json!(1e300)),
        ],
        file in 0_usize..3,
    ) {
        let mut files = directory::load(&bundles().join("sample.v1")).unwrap();
        let content = files.values_mut().nth(file).unwrap();
        let mut object: Value = serde_saphyr::from_slice(content).unwrap();
        replace(&mut object, &mut { index }, &with);
        *content = object.to_string().into_bytes();
        for problem in check_files(&files) {
            prop_assert!(!problem.to_string().contains('\n'));
        }
    }
}
