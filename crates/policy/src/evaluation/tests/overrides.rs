use super::*;
#[cfg(feature = "cue")]
use crate::RuleStep;
use crate::{AdmissionOperation, PolicyKind};

/// A rule that appends its name to a list, if the list has the expected items.
fn appends(name: &str) -> Value {
    json!({"cue": adds("/spec/order/-", name)})
}

fn order(outcome: &OverrideOutcome) -> Vec<String> {
    assert_eq!(outcome.refusal, None);
    let order = outcome.object["spec"]["order"].as_array().unwrap();
    order
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn cluster_policies_come_first_then_names_then_rules() {
    let policies = [
        overriding("n/a", &[appends("op a")]),
        overriding("b", &[appends("cop b")]),
        overriding("n/b", &[appends("op b 0"), appends("op b 1")]),
        overriding("a", &[appends("cop a 0"), appends("cop a 1"), appends("cop a 2")]),
        overriding("m/a", &[appends("of another namespace")]),
        overriding("10", &[appends("cop 10")]),
    ];
    let expected = [
        "cop 10", "cop a 0", "cop a 1", "cop a 2", "cop b", "op a", "op b 0", "op b 1",
    ];
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    assert_eq!(order(&overridden(&policies, &attributes)), expected);
    let mut reversed = policies.to_vec();
    reversed.reverse();
    assert_eq!(order(&overridden(&reversed, &attributes)), expected);
}

#[cfg(feature = "cue")]
#[test]
fn all_steps_of_a_rule_are_applied_in_order() {
    let overriders = json!({
        "plaintext": [{"op": "replace", "path": "/metadata/labels/plaintext", "value": "last"}, {"op": "remove", "path": "/spec/nodeName"}],
        "origin": [{"type": "labels", "operation": "add", "labels": {"plaintext": "origin", "origin": "x"}}],
        "cel": {"expression": adds("/metadata/labels/cel", "$object/metadata/labels/cue")},
        "cue": adds("/metadata/labels/cue", "$object/metadata/labels/rendered"),
        "template": {"type": "labels", "operation": "add", "path": "rendered", "valueRef": {"from": "owner", "path": "/metadata/name"}},
    });
    let mut pod = pod();
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner"}]);
    let set = set(&[overriding("a", &[overriders])]);
    let attributes = AdmissionAttributes::create(&pod);
    let needs = set.override_needs(&attributes);
    let answers = needs
        .into_iter()
        .map(|need| {
            (
                need,
                crate::FetchedAnswer::Found(json!({"metadata": {"name": "owner"}})),
            )
        })
        .collect();
    let outcome = done(set.override_object(&attributes, &answers, &EvaluationBudget::default()));
    let steps: Vec<_> = outcome.steps.iter().map(|step| step.step).collect();
    assert_eq!(
        steps,
        [
            RuleStep::RenderedCue,
            RuleStep::Cue,
            RuleStep::Cel,
            RuleStep::Origin,
            RuleStep::Plaintext
        ]
    );
    assert_eq!(
        outcome.object["metadata"]["labels"],
        json!({"rendered": "owner", "cue": "owner", "cel": "owner", "plaintext": "last", "origin": "x"})
    );
    assert_eq!(outcome.object["spec"], json!({}));
}

#[test]
fn the_patch_is_minimal_and_applies_to_the_original_object() {
    let overriders = json!({"plaintext": [
        {"op": "replace", "path": "/metadata/annotations/example.com~1a", "value": "1"},
        {"op": "add", "path": "/spec/gone", "value": 1},
        {"op": "remove", "path": "/spec/gone"},
        {"op": "replace", "path": "/spec/nodeName", "value": "x"},
    ]});
    let pod = pod();
    let outcome = overridden(
        &[overriding("a", &[overriders])],
        &AdmissionAttributes::create(&pod),
    );
    assert_eq!(
        patch(&outcome),
        json!([{"op": "add", "path": "/metadata/annotations", "value": {"example.com/a": "1"}}])
    );
    assert_eq!(outcome.steps[0].patch.len(), 4);
}

#[test]
fn deleted_objects_are_not_changed() {
    let request = json!({"operation": "DELETE", "oldObject": pod()});
    let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
    let broken = json!({"cue": "no JSON"});
    let outcome = overridden(&[overriding("a", &[broken])], &attributes);
    assert_eq!(
        (patch(&outcome), outcome.refusal, outcome.asked),
        (json!([]), None, vec![])
    );
}

#[test]
fn rules_apply_to_their_operations() {
    let rule =
        |operations: Value, name: &str| json!({"targetOperations": operations, "overriders": appends(name)});
    let rules = json!([
        rule(json!(["CREATE"]), "create"),
        rule(json!(["*"]), "star"),
        rule(json!([]), "none"),
        rule(json!(["UPDATE", "DELETE"]), "update")
    ]);
    let policies = [policy(
        "ClusterOverridePolicy",
        "a",
        json!({"overrideRules": rules}),
    )];
    let pod = pod();
    let create = AdmissionAttributes::create(&pod);
    assert_eq!(order(&overridden(&policies, &create)), ["create", "star", "none"]);
    let update = AdmissionAttributes {
        operation: AdmissionOperation::Update,
        old_object: Some(&pod),
        ..create
    };
    assert_eq!(order(&overridden(&policies, &update)), ["star", "none", "update"]);
}

#[test]
fn programs_get_the_inputs_they_declare() {
    let mut pod = pod();
    let old = pod.clone();
    pod["spec"]["nodeName"] = "y".into();
    let request =
        json!({"operation": "UPDATE", "object": pod, "oldObject": old, "userInfo": {"username": "me"}});
    let namespace = json!({"metadata": {"name": "n", "labels": {"team": "t"}}});
    let attributes = AdmissionAttributes::from_request(&request, Some(&namespace)).unwrap();
    let all = json!({
        "old": "$oldObject/spec/nodeName", "new": "$object/spec/nodeName", "user": "$request/userInfo/username",
        "operation": "$request/operation", "kind": "$request/kind/kind", "team": "$namespaceObject/metadata/labels/team",
    });
    let expected =
        json!({"old": "x", "new": "y", "user": "me", "operation": "UPDATE", "kind": "Pod", "team": "t"});
    let cel = json!({"cel": {"expression": adds("/seen", all.clone())}});
    let tags = "@tag(oldObject) @tag(request) @tag(namespaceObject)";
    let cue = json!({"cue": adds("/seen", all) + tags});
    for overriders in [cel, cue] {
        let outcome = overridden(&[overriding("a", &[overriders])], &attributes);
        assert_eq!(outcome.object["seen"], expected);
    }
    // A program that does not declare the input may have a field of that name.
    let outcome = overridden(
        &[overriding(
            "a",
            &[json!({"cue": adds("/seen", "$request/operation")})],
        )],
        &attributes,
    );
    assert!(outcome.refusal.is_some());
}

#[test]
fn a_policy_whose_conditions_are_false_is_skipped() {
    for (met, expected) in [(true, 1), (false, 0)] {
        let condition = json!({"met": met}).to_string();
        let spec = json!({
            "matchConditions": [{"name": "c", "expression": condition}],
            "overrideRules": [{"overriders": appends("a")}],
        });
        let pod = pod();
        let outcome = overridden(
            &[policy("ClusterOverridePolicy", "a", spec)],
            &AdmissionAttributes::create(&pod),
        );
        assert_eq!((outcome.steps.len(), outcome.refusal), (expected, None));
    }
}

#[test]
fn the_last_of_policies_with_the_same_key_applies() {
    let policies = [
        overriding("a", &[appends("old")]),
        overriding("a", &[appends("new")]),
    ];
    let pod = pod();
    assert_eq!(
        order(&overridden(&policies, &AdmissionAttributes::create(&pod))),
        ["new"]
    );
    assert_eq!(set(&policies).policies().count(), 1);
}

#[test]
fn only_policies_of_the_kind_are_evaluated() {
    let mut policies: Vec<_> = (0..97)
        .map(|number| {
            let selector = json!([{"apiVersion": "v1", "kind": format!("Kind{number}")}]);
            let rules = json!([{"overriders": {"cue": "no JSON"}}]);
            let spec = json!({"resourceSelectors": selector, "overrideRules": rules});
            policy("ClusterOverridePolicy", &format!("p{number}"), spec)
        })
        .collect();
    for name in ["a", "b", "c"] {
        policies.push(overriding(name, &[appends(name)]));
    }
    let pod = pod();
    let outcome = overridden(&policies, &AdmissionAttributes::create(&pod));
    assert_eq!(order(&outcome), ["a", "b", "c"]);
    let asked: Vec<_> = outcome.asked.iter().map(ToString::to_string).collect();
    assert_eq!(
        asked,
        [
            "ClusterOverridePolicy a",
            "ClusterOverridePolicy b",
            "ClusterOverridePolicy c"
        ]
    );
    assert_eq!(outcome.asked[0].kind, PolicyKind::ClusterOverridePolicy);
}
