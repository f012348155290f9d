use serde_json::{Value, json};

use super::*;
use crate::{
    AdmissionAttributes, Answers, CompiledPolicy, Engines, FetchedAnswer, OverrideOutcome, PolicyEvaluation,
    PolicySet, ValidationOutcome,
    tests::{overriding, validating},
};

fn overridden(overriders: Value, attributes: &AdmissionAttributes<'_>) -> OverrideOutcome {
    let compiled = CompiledPolicy::compile(&overriding("a", &[overriders]), &Engines::built_in()).unwrap();
    assert_eq!(compiled.problems(), []);
    let set = PolicySet::new([compiled.into()]);
    match set.override_object(attributes, &Answers::default(), &EvaluationBudget::default()) {
        PolicyEvaluation::Done(outcome) => outcome,
        PolicyEvaluation::Missing(missing) => panic!("{missing:?}"),
    }
}

fn validated(rule: Value, attributes: &AdmissionAttributes<'_>) -> ValidationOutcome {
    let compiled = CompiledPolicy::compile(&validating("a", json!([rule])), &Engines::built_in()).unwrap();
    assert_eq!(compiled.problems(), []);
    let set = PolicySet::new([compiled.into()]);
    match set.validate(attributes, &Answers::default(), &EvaluationBudget::default()) {
        PolicyEvaluation::Done(outcome) => outcome,
        PolicyEvaluation::Missing(missing) => panic!("{missing:?}"),
    }
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}})
}

#[test]
fn a_program_adds_an_annotation_with_or_without_existing_ones() {
    let program = r#"
object: _ @tag(object)
patches: [
    if object.metadata.annotations == _|_ {
        {op: "add", path: "/metadata/annotations", value: {}}
    },
    {op: "add", path: "/metadata/annotations/added-by", value: "cue"},
]"#;
    let mut pod = pod();
    for (annotations, expected) in [
        (None, json!({"added-by": "cue"})),
        (Some(json!({"a": "b"})), json!({"a": "b", "added-by": "cue"})),
    ] {
        if let Some(annotations) = annotations {
            pod["metadata"]["annotations"] = annotations;
        }
        let outcome = overridden(json!({"cue": program}), &AdmissionAttributes::create(&pod));
        assert_eq!(outcome.refusal, None);
        assert_eq!(outcome.object["metadata"]["annotations"], expected);
    }
}

#[test]
fn a_guard_against_deletion_allows_objects_without_labels() {
    let program = r#"
object: _ @tag(object)
reject: object.metadata.labels != _|_ && object.metadata.labels["example.com/no-delete"] == "true"
validate: {
    if reject {
        reason: "operation rejected"
    }
    if !reject {
        reason: ""
    }
    valid: !reject
}"#;
    let rule = json!({"targetOperations": ["DELETE"], "cue": program});
    let mut pod = pod();
    for (labels, allowed) in [
        (None, true),
        (Some(json!({"example.com/no-delete": "false"})), true),
        (Some(json!({"example.com/no-delete": "true"})), false),
    ] {
        if let Some(labels) = labels {
            pod["metadata"]["labels"] = labels;
        }
        let request = json!({"operation": "DELETE", "oldObject": pod});
        let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
        let outcome = validated(rule.clone(), &attributes);
        assert_eq!(outcome.is_allowed(), allowed, "{outcome:?}");
        assert_eq!(
            outcome.message(),
            (!allowed).then(|| "operation rejected".to_owned())
        );
    }
}

#[test]
fn programs_can_declare_the_request() {
    let program = r#"
object: _ @tag(object)
request: _ @tag(request)
patches: [{op: "replace", path: "/metadata/labels/by", value: request.userInfo.username}]"#;
    let request = json!({"operation": "CREATE", "object": pod(), "userInfo": {"username": "me"}});
    let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
    let outcome = overridden(json!({"cue": program}), &attributes);
    assert_eq!(outcome.object["metadata"]["labels"], json!({"by": "me"}));
    // An older program may have a field of that name.
    let program = r#"
object: _ @tag(object)
request: object.metadata.name
patches: [{op: "replace", path: "/metadata/labels/by", value: request}]"#;
    let outcome = overridden(json!({"cue": program}), &attributes);
    assert_eq!(outcome.object["metadata"]["labels"], json!({"by": "a"}));
}

#[test]
fn problems_of_programs_have_line_and_column() {
    let policy = overriding("a", &[json!({"cue": "#Definition: 1\npatches: missing"})]);
    let problems = CompiledPolicy::compile(&policy, &Engines::built_in())
        .unwrap()
        .problems();
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(
        told[0].starts_with("spec.overrideRules[0].overriders.cue: line 1, column 1: definition: "),
        "{told:?}"
    );
    let pod = pod();
    let program = "object: _ @tag(object)\npatches: [{op: \"add\", path: \"/a\", value: object.spec.none}]";
    let outcome = overridden(json!({"cue": program}), &AdmissionAttributes::create(&pod));
    let refusal = outcome.refusal.unwrap().to_string();
    assert!(
        refusal.starts_with("ClusterOverridePolicy a: rule 0: cue: line 2, column "),
        "{refusal}"
    );
}

#[test]
fn a_program_that_exhausts_its_budget_is_stopped() {
    let program = "object: _ @tag(object)\npatches: [for i, t in object.list for j, u in object.list for k, v in object.list {op: \"remove\", path: \"/\\(i)\"}]";
    let mut pod = pod();
    pod["list"] = (0..1000).collect();
    let policy = overriding("a", &[json!({"cue": program})]);
    let compiled = CompiledPolicy::compile(&policy, &Engines::built_in()).unwrap();
    let set = PolicySet::new([compiled.into()]);
    let attributes = AdmissionAttributes::create(&pod);
    let started = std::time::Instant::now();
    let PolicyEvaluation::Done(outcome) =
        set.override_object(&attributes, &Answers::default(), &EvaluationBudget::default())
    else {
        panic!()
    };
    assert!(outcome.refusal.is_some());
    assert!(started.elapsed().as_secs() < 30);
}

#[test]
fn a_program_can_describe_a_request() {
    let program = r#"
object: _ @tag(object)
processing: {
    output: {
        team?: string
    }
    http: {
        method: *"GET" | string
        url:    "https://teams.example.com/\(object.metadata.namespace)"
        request: {
            header: {"Accept": "application/json"}
        }
    }
}
patches: [
    if processing.output.team != _|_ {
        {op: "replace", path: "/metadata/labels/team", value: processing.output.team}
    },
]"#;
    let policy = overriding("a", &[json!({"cue": program})]);
    let compiled = CompiledPolicy::compile(&policy, &Engines::built_in()).unwrap();
    assert_eq!(compiled.problems(), []);
    let set = PolicySet::new([compiled.into()]);
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let budget = EvaluationBudget::default();
    let PolicyEvaluation::Missing(missing) = set.override_object(&attributes, &Answers::default(), &budget)
    else {
        panic!("nothing is fetched")
    };
    assert_eq!(missing[0].to_string(), "GET https://teams.example.com/n");
    for (answer, expected) in [
        (
            FetchedAnswer::Found(json!({"team": "data"})),
            Ok(json!({"team": "data"})),
        ),
        (FetchedAnswer::Found(json!({})), Ok(Value::Null)),
        (
            FetchedAnswer::Found(json!([])),
            Err("rule 0: cue: GET https://teams.example.com/n: the answer is not an object"),
        ),
        (
            FetchedAnswer::Failed("status 500".into()),
            Err("rule 0: cue: GET https://teams.example.com/n: status 500"),
        ),
    ] {
        let answers = [(missing[0].clone(), answer)].into_iter().collect();
        let PolicyEvaluation::Done(outcome) = set.override_object(&attributes, &answers, &budget) else {
            panic!("it is fetched")
        };
        let refusal = outcome.refusal.map(|refusal| refusal.to_string());
        match expected {
            Ok(labels) => {
                assert_eq!(refusal, None);
                assert_eq!(outcome.object["metadata"]["labels"], labels);
            }
            Err(error) => assert_eq!(refusal, Some(format!("ClusterOverridePolicy a: {error}"))),
        }
    }
}
