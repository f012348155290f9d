use std::time::Instant;

use super::*;
use crate::{check, tests::engines};

#[test]
fn a_policy_with_very_many_problems_is_refused_quickly() {
    let rule = json!({"overriders": {
        "cue": "{".repeat(60_000),
        "cel": {"expression": "(".repeat(4000)},
        "plaintext": (0..300).map(|_| json!({"op": "add", "path": "a"})).collect::<Vec<_>>(),
    }});
    let policy = overriding("a", &[]);
    let mut policy = policy;
    policy["spec"]["overrideRules"] = (0..2000).map(|_| rule.clone()).collect();
    let started = Instant::now();
    let problems = check(&policy, &engines());
    assert!(
        problems
            .iter()
            .any(|problem| problem.path == "spec.overrideRules"),
        "{}",
        problems.len()
    );
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

#[test]
fn deeply_nested_policies_are_refused() {
    let mut value = json!(1);
    for _ in 0..100 {
        value = json!({"a": [value]});
    }
    let pod = pod();
    let deep = |path: &str| json!({"plaintext": [{"op": "add", "path": path, "value": value}]});
    let outcome = overridden(
        &[overriding("a", &[deep("/spec/x")])],
        &AdmissionAttributes::create(&pod),
    );
    assert_eq!(outcome.refusal, None);
    let rules: Vec<_> = (0..20)
        .map(|_| deep(&("/spec/x".to_owned() + &"/a/0".repeat(45))))
        .collect();
    let outcome = overridden(&[overriding("a", &rules)], &AdmissionAttributes::create(&pod));
    assert!(outcome.refusal.is_some());
}

#[test]
fn many_selectors_over_many_labels_match_quickly() {
    let values: Vec<_> = (0..500).map(|number| format!("v{number}")).collect();
    let expression = json!({"key": "a", "operator": "NotIn", "values": values});
    let fields = json!({"matchExpressions": (0..20).map(|_| json!({"field": "metadata.labels.a", "operator": "NotIn", "value": values})).collect::<Vec<_>>()});
    let selector = json!({"apiVersion": "v1", "kind": "Pod", "labelSelector": {"matchExpressions": [expression]}, "fieldSelector": fields});
    let selectors: Vec<_> = (0..20).map(|_| selector.clone()).collect();
    let rules = json!([{"overriders": {"cue": adds("/spec/a", 1)}}]);
    let policy = policy(
        "ClusterOverridePolicy",
        "a",
        json!({"resourceSelectors": selectors, "overrideRules": rules}),
    );
    let mut pod = pod();
    pod["metadata"]["labels"] = (0..2000)
        .map(|number| (format!("l{number}"), json!("v")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    pod["metadata"]["labels"]["a"] = "v499".into();
    let set = set(&[policy]);
    let started = Instant::now();
    let attributes = AdmissionAttributes::create(&pod);
    let outcome = done(set.override_object(&attributes, &Answers::default(), &EvaluationBudget::default()));
    assert!(outcome.steps.is_empty());
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn an_oversized_patch_fails_without_affecting_other_policies() {
    let copies: Vec<_> = (0..400)
        .map(|_| json!({"op": "copy", "from": "/spec", "path": "/spec/again"}))
        .collect();
    let mut hostile = overriding("a", &[json!({"cue": json!({"patches": copies}).to_string()})]);
    hostile["spec"]["failurePolicy"] = "Ignore".into();
    let pod = pod();
    let policies = [hostile, overriding("b", &[json!({"cue": adds("/spec/b", 1)})])];
    let outcome = overridden(&policies, &AdmissionAttributes::create(&pod));
    assert_eq!((outcome.refusal, outcome.ignored.len()), (None, 1));
    assert_eq!(outcome.object["spec"], json!({"nodeName": "x", "b": 1}));
}
