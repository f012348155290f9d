use super::*;
use crate::{DataReference, FetchedAnswer, tests::validating};

fn label_from(name: &str, reference: Value) -> Value {
    overriding(
        name,
        &[
            json!({"template": {"type": "labels", "operation": "replace", "path": "l", "valueRef": reference}}),
        ],
    )
}

fn config_map(name: &str) -> Value {
    json!({"from": "k8s", "path": "/data/key", "k8s": {"apiVersion": "v1", "kind": "ConfigMap", "name": name}})
}

/// Repeats the evaluation until every reference is fetched.
fn with_answers(
    policies: &[Value],
    object: &Value,
    answer: impl Fn(&DataReference) -> FetchedAnswer,
) -> OverrideOutcome {
    let set = set(policies);
    let attributes = AdmissionAttributes::create(object);
    let budget = EvaluationBudget::default();
    let mut answers: Answers = set
        .override_needs(&attributes)
        .into_iter()
        .map(|need| (need.clone(), answer(&need)))
        .collect();
    for _ in 0..10 {
        match set.override_object(&attributes, &answers, &budget) {
            PolicyEvaluation::Done(outcome) => return outcome,
            PolicyEvaluation::Missing(missing) => {
                for need in missing {
                    assert_eq!(answers.get(&need), None);
                    let fetched = answer(&need);
                    answers.insert(need, fetched);
                }
            }
        }
    }
    panic!("the evaluation does not end");
}

#[test]
fn references_are_fetched_and_used() {
    let policies = [label_from("a", config_map("settings"))];
    let pod = pod();
    let needs = set(&policies).override_needs(&AdmissionAttributes::create(&pod));
    assert_eq!(
        needs,
        [DataReference::Object {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: "n".into(),
            name: "settings".into(),
            is_confined: false,
        }]
    );
    let outcome = with_answers(&policies, &pod, |_| {
        FetchedAnswer::Found(json!({"data": {"key": "value"}}))
    });
    assert_eq!(outcome.object["metadata"]["labels"], json!({"l": "value"}));
}

#[test]
fn a_reference_uses_changes_of_earlier_rules() {
    let policies = [
        overriding("a", &[json!({"cue": adds("/spec/nodeName", "changed")})]),
        label_from("b", config_map("of-{{spec.nodeName}}")),
    ];
    let outcome = with_answers(&policies, &pod(), |need| match need {
        DataReference::Object { name, .. } => FetchedAnswer::Found(json!({"data": {"key": name}})),
        _ => FetchedAnswer::NotFound,
    });
    assert_eq!(outcome.object["metadata"]["labels"], json!({"l": "of-changed"}));
}

#[test]
fn a_missing_reference_has_one_clear_error() {
    let owner = json!({"from": "owner", "path": "/metadata/name"});
    for (reference, answer, expected) in [
        (
            config_map("c"),
            FetchedAnswer::NotFound,
            "ConfigMap n/c not found",
        ),
        (
            config_map("c"),
            FetchedAnswer::Failed("timed out".into()),
            "ConfigMap n/c: timed out",
        ),
        (
            config_map("{{spec}}"),
            FetchedAnswer::NotFound,
            "{{spec}} is neither a string nor a number nor a boolean",
        ),
        (
            config_map("a/{{spec.nodeName}}"),
            FetchedAnswer::NotFound,
            "\"a/x\" is not a name of an object",
        ),
        (
            owner,
            FetchedAnswer::NotFound,
            "the object has no owner: metadata.ownerReferences is empty",
        ),
    ] {
        let outcome = with_answers(&[label_from("a", reference)], &pod(), |_| answer.clone());
        assert_eq!(
            outcome.refusal.unwrap().to_string(),
            format!("ClusterOverridePolicy a: rule 0: {expected}")
        );
    }
}

#[test]
fn a_missing_value_fetches_nothing() {
    let policies = [label_from("a", config_map("of-{{spec.none}}"))];
    let pod = pod();
    assert_eq!(
        set(&policies).override_needs(&AdmissionAttributes::create(&pod)),
        []
    );
    let outcome = with_answers(&policies, &pod, |_| panic!("nothing is fetched"));
    // The program gets an empty object.
    assert_eq!((outcome.refusal, outcome.steps), (None, vec![]));
}

#[test]
fn cyclic_owners_do_not_loop() {
    let mut pod = pod();
    pod["metadata"]["uid"] = "1".into();
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]);
    let owner = json!({"from": "owner", "path": "/metadata/name"});
    let policies = [label_from("a", owner)];
    let outcome = with_answers(&policies, &pod, |_| FetchedAnswer::Found(pod.clone()));
    assert_eq!(outcome.object["metadata"]["labels"], json!({"l": "a"}));
    let outcome = with_answers(&policies, &pod, |_| {
        FetchedAnswer::Found(json!({"metadata": {"uid": "2"}}))
    });
    assert_eq!(
        outcome.refusal.unwrap().message,
        "Pod n/a is not the owner with uid 1, but another object of the same name"
    );
}

#[test]
fn both_references_of_a_condition_are_distinct() {
    let reference = |from: &str, name: &str, path: &str| json!({"from": from, "path": path, "k8s": {"apiVersion": "v1", "kind": "ConfigMap", "name": name}});
    let condition = json!({
        "cond": "Equal", "message": "m",
        "dataRef": reference("k8s", "data", "/data/key"),
        "valueRef": reference("k8s", "value", "/data/key"),
    });
    let set = set(&[validating(
        "a",
        json!([{"template": {"type": "condition", "condition": condition}}]),
    )]);
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let needs = set.validation_needs(&attributes);
    assert_eq!(needs.len(), 2);
    let PolicyEvaluation::Missing(missing) =
        set.validate(&attributes, &Answers::default(), &EvaluationBudget::default())
    else {
        panic!("nothing is fetched");
    };
    assert_eq!(missing, needs);
    let answers = needs
        .into_iter()
        .map(|need| {
            (
                need.clone(),
                FetchedAnswer::Found(json!({"data": {"key": "same"}})),
            )
        })
        .collect();
    let outcome = done(set.validate(&attributes, &answers, &EvaluationBudget::default()));
    assert_eq!(outcome.message().unwrap(), "m");
}
