use proptest::{prelude::*, sample::select};

use super::*;
use crate::{AdmissionOperation, PolicyExplanation, PolicyObject, tests::engines};

fn explained(policy: &Value, attributes: &AdmissionAttributes<'_>) -> PolicyExplanation {
    let (object, _) = PolicyObject::read(policy).unwrap();
    PolicyExplanation::new(&object, &engines(), attributes, &EvaluationBudget::default())
}

/// The mismatches, each with its field.
fn mismatches(policy: &Value, attributes: &AdmissionAttributes<'_>) -> Vec<String> {
    let explanation = explained(policy, attributes);
    let parts = explanation.parts.iter().chain(&explanation.rules);
    parts
        .filter_map(|part| Some(format!("{}: {}", part.field, part.mismatch.as_ref()?)))
        .collect()
}

fn selecting(selectors: &Value) -> Value {
    let rules = json!([{"targetOperations": ["CREATE"], "overriders": {"cue": adds("/a", 1)}}]);
    policy(
        "ClusterOverridePolicy",
        "a",
        json!({"resourceSelectors": selectors, "overrideRules": rules}),
    )
}

#[test]
fn the_first_mismatch_of_each_selector_is_reported() {
    let mut pod = pod();
    pod["metadata"]["labels"] = json!({"app": "x"});
    let attributes = AdmissionAttributes::create(&pod);
    let labels = |selector| json!({"apiVersion": "v1", "kind": "Pod", "labelSelector": selector});
    let fields = |selector| json!({"apiVersion": "v1", "kind": "Pod", "fieldSelector": selector});
    for (selector, expected) in [
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
            "apiVersion is v1, not apps/v1",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Secret", "name": "b"}),
            "kind is Pod, not Secret",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "namespace": "m", "name": "b"}),
            "namespace is n, not m",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "name": "b"}),
            "name is a, not b",
        ),
        (
            labels(json!({"matchLabels": {"app": "x", "tier": "y"}})),
            "labelSelector: tier is missing, not y",
        ),
        (
            labels(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x", "y"]}]})),
            "labelSelector: app NotIn [x, y]: it is x",
        ),
        (
            fields(json!({"matchFields": {"spec.nodeName": "y"}})),
            "fieldSelector: spec.nodeName is x, not y",
        ),
        (
            fields(json!({"matchExpressions": [{"field": "spec.a", "operator": "Exists"}]})),
            "fieldSelector: spec.a Exists: it is missing",
        ),
    ] {
        let policy = selecting(&json!([selector]));
        assert_eq!(
            mismatches(&policy, &attributes),
            [format!("spec.resourceSelectors[0]: {expected}")]
        );
        assert!(!explained(&policy, &attributes).is_asked);
    }
}

#[test]
fn mismatches_of_namespaces_conditions_and_operations_are_reported() {
    let pod = pod();
    let update = AdmissionAttributes {
        operation: AdmissionOperation::Update,
        ..AdmissionAttributes::create(&pod)
    };
    let mut policy = overriding("m/a", &[json!({"cue": adds("/a", 1)})]);
    policy["spec"]["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    policy["spec"]["matchConditions"] = json!([
        {"name": "one", "expression": r#"{"met": true}"#}, {"name": "two", "expression": r#"{"met": false}"#},
    ]);
    policy["spec"]["overrideRules"][0]["targetOperations"] = json!(["CREATE", "CONNECT"]);
    assert_eq!(
        mismatches(&policy, &update),
        [
            "metadata.namespace: namespace is n, not m",
            "spec.namespaceSelector: the Namespace n is not known",
            "spec.matchConditions[1]: two: is false",
            "spec.overrideRules[0]: targetOperations are CREATE, CONNECT, not UPDATE",
        ]
    );
    let delete = AdmissionAttributes {
        operation: AdmissionOperation::Delete,
        object: None,
        old_object: Some(&pod),
        ..update
    };
    let policy = overriding("a", &[json!({"cue": adds("/a", 1)})]);
    assert_eq!(
        mismatches(&policy, &delete),
        ["spec.overrideRules[0]: deletions are not overridden"]
    );
}

proptest! {
    #[test]
    fn a_policy_is_evaluated_as_the_explanation_predicts(
        kinds in proptest::collection::vec(select(vec!["Pod", "Secret"]), 0..3),
        label in select(vec!["x", "y"]),
        operator in select(vec!["In", "NotIn", "Exists", "DoesNotExist"]),
        namespace in select(vec!["", "n", "m"]),
        name in select(vec!["", "a", "b"]),
        operation in select(vec![AdmissionOperation::Create, AdmissionOperation::Update]),
    ) {
        let mut pod = pod();
        pod["metadata"]["labels"] = json!({"app": "x"});
        let mut expression = json!({"field": "spec.nodeName", "operator": operator});
        if operator.ends_with("In") {
            expression["value"] = json!(["x"]);
        }
        let selectors: Vec<_> = kinds.iter().map(|kind| json!({
            "apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name,
            "labelSelector": {"matchLabels": {"app": label}},
            "fieldSelector": {"matchExpressions": [expression]},
        })).collect();
        let policy = selecting(&selectors.into());
        let attributes = AdmissionAttributes { operation, ..AdmissionAttributes::create(&pod) };
        let set = set(std::slice::from_ref(&policy));
        let explanation = explained(&policy, &attributes);
        prop_assert_eq!(explanation.is_asked, set.matching(&attributes).next().is_some());
        let holds = explanation.parts.is_empty() || explanation.parts.iter().any(|part| part.mismatch.is_none());
        prop_assert_eq!(explanation.is_asked, holds && operation == AdmissionOperation::Create);
    }
}
