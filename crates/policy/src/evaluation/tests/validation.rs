use super::*;
use crate::{FailureReason, api::ValidationAction};

fn refuses(reason: &str) -> Value {
    json!({"cue": json!({"validate": {"valid": false, "reason": reason}}).to_string()})
}

fn allows() -> Value {
    json!({"cue": json!({"validate": {"valid": true}}).to_string()})
}

fn acting(name: &str, actions: &[&str], rules: Value) -> Value {
    policy(
        "ClusterValidatePolicy",
        name,
        json!({"validationActions": actions, "validateRules": rules}),
    )
}

#[test]
fn all_messages_are_reported_in_order() {
    let policies = [
        validating("b", json!([refuses("b 0"), allows(), refuses("b 2")])),
        validating("a", json!([refuses("a")])),
    ];
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let expected =
        "a (ClusterValidatePolicy a); b 0 (ClusterValidatePolicy b); b 2 (ClusterValidatePolicy b)";
    let outcome = validated(&policies, &attributes);
    assert!(!outcome.is_allowed());
    assert_eq!(outcome.message().unwrap(), expected);
    let [b, a] = policies;
    assert_eq!(
        validated(&[a.clone(), b], &attributes).message().unwrap(),
        expected
    );
    // A single reason is not prefixed.
    assert_eq!(validated(&[a], &attributes).message().unwrap(), "a");
}

#[test]
fn unset_outputs_allow() {
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    for (program, allowed) in [
        ("{\"validate\": {}}", true),
        ("{\"validate\": {\"reason\": \"unused\"}}", true),
        ("{\"validate\": {\"valid\": true, \"reason\": \"\"}}", true),
        ("{\"validate\": {\"valid\": false}}", false),
        ("{}", false),
        ("{\"validate\": []}", false),
        ("{\"validate\": {\"valid\": 1}}", false),
        ("{\"validate\": {\"valid\": false, \"reason\": 1}}", false),
    ] {
        let outcome = validated(&[validating("a", json!([{"cue": program}]))], &attributes);
        assert_eq!(outcome.is_allowed(), allowed, "{program}");
        assert_eq!(outcome.message().is_none(), allowed, "{program}");
    }
    let outcome = validated(
        &[validating(
            "a",
            json!([{"cue": "{\"validate\": {\"valid\": false}}"}]),
        )],
        &attributes,
    );
    assert_eq!(outcome.message().unwrap(), "refused by ClusterValidatePolicy a");
}

#[test]
fn actions_determine_the_effect_of_findings() {
    let policies = [
        acting("audits", &["Audit"], json!([refuses("audited")])),
        acting("both", &["Warn", "Audit"], json!([refuses("warned and audited")])),
        acting("warns", &["Warn"], json!([refuses("warned")])),
    ];
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let outcome = validated(&policies, &attributes);
    assert!(outcome.is_allowed());
    assert_eq!(outcome.message(), None);
    assert_eq!(
        outcome.warnings(),
        [
            "ClusterValidatePolicy both: warned and audited",
            "ClusterValidatePolicy warns: warned"
        ]
    );
    let audited: Vec<_> = outcome
        .findings_with(ValidationAction::Audit)
        .map(|finding| finding.reason.as_str())
        .collect();
    assert_eq!(audited, ["audited", "warned and audited"]);
    // A policy that does not deny does not refuse by failing either.
    let outcome = validated(
        &[acting("a", &["Warn"], json!([{"cue": "no JSON"}]))],
        &attributes,
    );
    assert!(outcome.is_allowed());
    assert_eq!(outcome.ignored[0].reason, FailureReason::Policy);
}

#[test]
fn a_failing_validation_refuses_unless_ignored() {
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let failing = validating(
        "a",
        json!([{"cue": json!({"validate": "$object/spec/missing"}).to_string()}, refuses("also")]),
    );
    let outcome = validated(std::slice::from_ref(&failing), &attributes);
    assert_eq!(
        outcome.message().unwrap(),
        "also (ClusterValidatePolicy a); ClusterValidatePolicy a: rule 0: cue: $object/spec/missing does not exist"
    );
    let mut ignored = failing;
    ignored["spec"]["failurePolicy"] = "Ignore".into();
    let outcome = validated(&[ignored], &attributes);
    assert_eq!(
        (outcome.message().unwrap().as_str(), outcome.ignored.len()),
        ("also", 1)
    );
}

#[test]
fn deletions_are_validated_with_the_deleted_object() {
    let rules = json!([{"targetOperations": ["DELETE"], "cue": json!({"validate": {"valid": false, "reason": "$object/metadata/name"}}).to_string()}]);
    let policies = [validating("a", rules)];
    let request = json!({"operation": "DELETE", "object": null, "oldObject": pod()});
    let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
    assert_eq!(validated(&policies, &attributes).message().unwrap(), "a");
    let pod = pod();
    assert!(validated(&policies, &AdmissionAttributes::create(&pod)).is_allowed());
}

#[test]
fn old_objects_are_inputs_of_updates_only() {
    let seen = json!({"validate": {"valid": false, "reason": "$oldObject/metadata/name"}}).to_string();
    let policies = [validating("a", json!([{"cue": seen}]))];
    let request = json!({"operation": "UPDATE", "object": pod(), "oldObject": pod()});
    let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
    assert_eq!(validated(&policies, &attributes).message().unwrap(), "a");
    let pod = pod();
    let outcome = validated(&policies, &AdmissionAttributes::create(&pod));
    assert_eq!(
        outcome.refusals[0].message,
        "$oldObject/metadata/name does not exist"
    );
}

#[cfg(feature = "cue")]
#[test]
fn a_rule_has_one_finding_from_its_first_failing_step() {
    let condition =
        json!({"cond": "Exist", "message": "m", "dataRef": {"from": "owner", "path": "/metadata/name"}});
    let mut rule = refuses("by cue");
    rule["template"] = json!({"type": "condition", "condition": condition});
    rule["cel"] = json!({"validations": [{"expression": json!({"validate": {"valid": false, "reason": "by cel"}}).to_string()}]});
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let mut without_template = rule.clone();
    without_template.as_object_mut().unwrap().remove("template");
    let outcome = validated(&[validating("a", json!([without_template]))], &attributes);
    assert_eq!(outcome.message().unwrap(), "by cue");
    let outcome = validated(&[validating("a", json!([rule]))], &attributes);
    assert_eq!(
        outcome.message().unwrap(),
        "ClusterValidatePolicy a: rule 0: the object has no owner: metadata.ownerReferences is empty"
    );
}
