use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    EvaluationBudget, PolicySet,
    tests::{adds, compiled, overriding, validating},
};

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}})
}

fn file(case: Value) -> Value {
    json!({"policies": ["policy.yaml"], "objects": {"pod": pod()}, "cases": [case]})
}

/// The differences between a case and the outcome of policies.
fn differences(policies: &[Value], case: Value) -> Vec<String> {
    let cases = PolicyCases::read(&file(case)).unwrap();
    let set = PolicySet::new(policies.iter().map(compiled));
    let outcome = cases.cases[0].run(&set, &cases.data, &EvaluationBudget::default());
    outcome.differences.iter().map(ToString::to_string).collect()
}

fn problems(document: &Value) -> Vec<String> {
    match PolicyCases::read(document) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn all_problems_of_a_file_are_reported_at_once() {
    let document = json!({
        "policies": ["../a.yaml", "/etc/passwd", "a\\b.yaml", 3, "good/policy.yaml"],
        "objects": {"pod": {"kind": "Pod"}},
        "data": {
            "objects": [{"apiVersion": "v1", "kind": "ConfigMap"}],
            "responses": [{"url": "https://a", "body": 1, "error": "b"}],
        },
        "cases": [
            {"name": "a", "object": "pot", "expect": {"change": {}, "patch": []}},
            {"name": "a", "object": pod(), "operation": "UPDATE", "expect": {"change": {}, "denied": "no"}},
            {"name": "b", "object": pod(), "oldChange": {}, "oldObject": pod(), "operation": "DELETE", "expect": {"patch": []}},
        ],
    });
    let path = "must name a file below the folder of this one: a relative path without ..";
    assert_eq!(
        problems(&document),
        [
            &format!("policies[0]: {path}"),
            &format!("policies[1]: {path}"),
            &format!("policies[2]: {path}"),
            "policies[3]: must be the name of a file, or a policy",
            "objects.pod.apiVersion: must not be empty",
            "data.objects[0].metadata.name: must not be empty",
            "data.responses[0]: must have either body or error",
            "cases[0].object: \"pot\" not found in objects",
            "cases[0].expect: must have at most one of object, change and patch",
            "cases[1].name: is used by cases[0] already",
            "cases[1].oldObject: must be given with UPDATE",
            "cases[1].expect.change: must not be given with denied: nothing is written",
            "cases[2].oldObject: must be given with UPDATE only",
            "cases[2].expect.patch: must not be given with DELETE: nothing is written",
        ]
    );
}

#[test]
fn wrong_types_and_unknown_fields_are_reported_with_paths() {
    let case =
        json!({"name": "", "operation": "PATCH", "expekt": {}, "expect": {"denied": 3}, "dryRun": "yes"});
    assert_eq!(
        problems(&file(case)),
        [
            "cases[0].expekt: unknown field",
            "cases[0].object: Required value",
            "cases[0].name: Invalid value: \"\": cases[0].name in body should be at least 1 chars long",
            "cases[0].operation: Unsupported value: \"PATCH\": supported values: \"CREATE\", \"UPDATE\", \"DELETE\"",
            "cases[0].expect.denied: Invalid value: \"integer\": cases[0].expect.denied in body must be of type string: \"integer\"",
            "cases[0].dryRun: Invalid value: \"string\": cases[0].dryRun in body must be of type boolean: \"string\"",
        ]
    );
    assert_eq!(problems(&json!([])), [": is not an object"]);
    assert_eq!(
        problems(&json!({})),
        ["policies: Required value", "cases: Required value"]
    );
}

#[test]
fn a_case_passes_if_the_whole_outcome_is_expected() {
    let overrides = overriding(
        "o",
        &[json!({"cue": adds("/metadata/labels", json!({"a": "b"}))})],
    );
    let after = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "n", "labels": {"a": "b"}},
    });
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]);
    for expected in [
        json!({"object": after}),
        json!({"change": {"metadata": {"labels": {"a": "b"}}}}),
        json!({"patch": patch}),
    ] {
        let case = json!({"name": "a", "object": "pod", "expect": expected});
        assert_eq!(differences(std::slice::from_ref(&overrides), case), [""; 0]);
    }
    let case = json!({"name": "a", "object": "pod"});
    let told = differences(std::slice::from_ref(&overrides), case);
    assert!(told.len() == 1 && told[0].starts_with("object: "), "{told:?}");
}

#[test]
fn refusals_and_warnings_are_compared() {
    let refuses = |name: &str, reason: &str, actions: Value| {
        let program = json!({"validate": {"valid": false, "reason": reason}}).to_string();
        let mut policy = validating(name, json!([{ "cue": program }]));
        policy["spec"]["validationActions"] = actions;
        policy
    };
    let policies = [
        refuses("a", "no", json!(["Deny", "Audit"])),
        refuses("b", "hm", json!(["Warn"])),
    ];
    let full = json!({
        "denied": "no", "warnings": ["ClusterValidatePolicy b: hm"], "audits": ["ClusterValidatePolicy a: no"],
    });
    let case = json!({"name": "a", "object": "pod", "expect": full});
    assert_eq!(differences(&policies, case), [""; 0]);
    let case = json!({"name": "a", "object": "pod", "expect": {"error": "x"}});
    assert_eq!(
        differences(&policies, case),
        [
            "denied: expected nothing, not \"no\"",
            "error: expected \"x\", not nothing",
            "warnings: expected [], not [\"ClusterValidatePolicy b: hm\"]",
            "audits: expected [], not [\"ClusterValidatePolicy a: no\"]",
        ]
    );
}

#[test]
fn failures_match_by_substring() {
    let fails = |failure_policy: &str| {
        let mut policy = overriding("o", &[json!({"cue": "{}"})]);
        policy["spec"]["failurePolicy"] = failure_policy.into();
        policy
    };
    for (failure_policy, expected) in [
        ("Fail", json!({"error": "rule 0: cue:"})),
        ("Ignore", json!({"ignored": ["rule 0: cue:"]})),
    ] {
        let case = json!({"name": "a", "object": "pod", "expect": expected});
        assert_eq!(differences(&[fails(failure_policy)], case), [""; 0]);
    }
    for failure_policy in ["Fail", "Ignore"] {
        let told = differences(&[fails(failure_policy)], json!({"name": "a", "object": "pod"}));
        assert_eq!(told.len(), 1, "{told:?}");
    }
}

#[test]
fn a_case_has_its_own_change_user_and_data() {
    let reason = json!({"validate": {"valid": false, "reason": "$object/metadata/labels/a"}});
    let policies = [validating("a", json!([{ "cue": reason.to_string() }]))];
    let case = json!({
        "name": "a", "object": "pod", "change": {"metadata": {"labels": {"a": "mine"}, "namespace": null}},
        "expect": {"denied": "mine"},
    });
    assert_eq!(differences(&policies, case), [""; 0]);
    let reason = json!({"validate": {"valid": false, "reason": "$request/userInfo/username"}});
    let validations = [json!({ "expression": reason.to_string() })];
    let policies = [validating("a", json!([{"cel": {"validations": validations}}]))];
    let case = json!({"name": "a", "object": "pod", "user": {"name": "alice", "groups": ["g"]}, "expect": {"denied": "alice"}});
    assert_eq!(differences(&policies, case), [""; 0]);
}

#[test]
fn data_is_an_object_or_objects_and_responses() {
    assert_eq!(known_data(&pod()).unwrap().objects, [pod()]);
    let data = json!({"objects": [pod()], "responses": [{"url": "https://a", "body": {}}]});
    let data = known_data(&data).unwrap();
    assert_eq!((data.objects.len(), data.responses.len()), (1, 1));
    let told = |document: &Value| known_data(document).unwrap_err()[0].to_string();
    assert_eq!(told(&json!({"objekts": []})), "objekts: unknown field");
    assert_eq!(told(&json!({"kind": "Pod"})), "apiVersion: must not be empty");
}

proptest! {
    #[test]
    fn any_document_is_parsed_or_refused(text in "[ -~]{0,20}", number in any::<i64>()) {
        for value in [json!(text), json!(number), json!([text]), json!({text.as_str(): number}), Value::Null] {
            for field in ["policies", "objects", "data", "cases"] {
                let mut document = file(json!({"name": "a", "object": "pod"}));
                document[field] = value.clone();
                drop(PolicyCases::read(&document));
            }
            for field in ["name", "operation", "object", "change", "oldObject", "user", "namespaceObject", "data", "expect"] {
                let mut case = json!({"name": "a", "object": "pod"});
                case[field] = value.clone();
                drop(PolicyCases::read(&file(case)));
            }
        }
    }
}
