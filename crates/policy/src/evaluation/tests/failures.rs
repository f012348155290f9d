use super::*;
use crate::{AdmissionOperation, FailureReason, RuleStep, api::FailurePolicyType};

fn with_failure_policy(mut policy: Value, failure_policy: &str) -> Value {
    policy["spec"]["failurePolicy"] = failure_policy.into();
    policy
}

fn failing() -> Value {
    json!({"cue": adds("/spec/b", "$object/spec/missing")})
}

#[test]
fn a_failing_policy_refuses_without_changes() {
    let policies = [
        overriding("a", &[json!({"cue": adds("/spec/a", 1)})]),
        overriding("b", &[json!({"cue": adds("/spec/c", 1)}), failing()]),
        overriding("c", &[json!({"cue": adds("/spec/d", 1)})]),
    ];
    let pod = pod();
    let outcome = overridden(&policies, &AdmissionAttributes::create(&pod));
    let refusal = outcome.refusal.clone().unwrap();
    assert_eq!(
        refusal.to_string(),
        "ClusterOverridePolicy b: rule 1: cue: $object/spec/missing does not exist"
    );
    assert_eq!(
        (refusal.rule, refusal.reason),
        (Some(1), FailureReason::Step(RuleStep::Cue))
    );
    assert_eq!(refusal.failure_policy, FailurePolicyType::Fail);
    assert_eq!(patch(&outcome), json!([]));
    assert_eq!(outcome.asked.len(), 2);
}

#[test]
fn an_ignored_failing_policy_has_no_effect() {
    let policies = [
        overriding("a", &[json!({"cue": adds("/spec/a", 1)})]),
        with_failure_policy(
            overriding("b", &[json!({"cue": adds("/spec/c", 1)}), failing()]),
            "Ignore",
        ),
        overriding("c", &[json!({"cue": adds("/spec/d", 1)})]),
    ];
    let pod = pod();
    let outcome = overridden(&policies, &AdmissionAttributes::create(&pod));
    assert_eq!(outcome.refusal, None);
    assert_eq!(outcome.object["spec"], json!({"nodeName": "x", "a": 1, "d": 1}));
    assert_eq!(outcome.ignored.len(), 1);
    let changed: Vec<_> = outcome
        .steps
        .iter()
        .map(|step| step.policy.name.as_str())
        .collect();
    assert_eq!(changed, ["a", "c"]);
}

#[test]
fn every_failure_has_one_clear_error() {
    for (overriders, expected) in [
        (
            json!({"cue": "{"}),
            "spec.overrideRules[0].overriders.cue: line 1, column 1: is not JSON",
        ),
        (
            json!({"cue": "{}"}),
            "rule 0: cue: the program does not have the required field: patches, or validate",
        ),
        (
            json!({"cue": "{\"patches\": {}}"}),
            "rule 0: cue: patches is not a list",
        ),
        (
            json!({"cue": "{\"patches\": [{}]}"}),
            "rule 0: cue: patches[0].op: must be add, replace, remove, test, copy or move",
        ),
        (
            json!({"plaintext": [{"op": "add", "path": "/spec/nodeName/a", "value": 1}]}),
            "rule 0: plaintext: /spec/nodeName/a: /spec/nodeName is neither an object nor a list",
        ),
        (
            json!({"plaintext": [{"op": "add", "path": "a", "value": 1}]}),
            "spec.overrideRules[0].overriders.plaintext[0].path: \"a\" is not a JSON pointer: begin with /",
        ),
        (
            json!({"plaintext": [{"op": "add", "path": "/a"}]}),
            "spec.overrideRules[0].overriders.plaintext[0].value: must be given",
        ),
        (
            json!({"origin": [{"type": "resourceRequirements", "operation": "add", "containerCount": 3, "resourceRequirements": {"limits": {"cpu": 1}}}]}),
            "rule 0: origin: origin[0]: containerCount is 3, but the object has 0 containers",
        ),
        (
            json!({"template": {"type": "resourcesOversell", "operation": "replace", "resourcesOversell": {"cpuFactor": "2"}}}),
            "spec.overrideRules[0].overriders.template.resourcesOversell.cpuFactor: \"2\" is not a factor: write a number above 0 and below 1, for example 0.5",
        ),
    ] {
        let pod = pod();
        let outcome = overridden(
            &[overriding("a", &[overriders])],
            &AdmissionAttributes::create(&pod),
        );
        let refusal = outcome.refusal.unwrap().to_string();
        assert_eq!(refusal, format!("ClusterOverridePolicy a: {expected}"));
    }
}

#[test]
fn a_missing_engine_is_reported() {
    let overriders = json!({
        "cue": "patches: []",
        "cel": {"expression": "[]"},
        "template": {"type": "labels", "operation": "remove", "path": "a"},
    });
    let policy = overriding("a", &[overriders]);
    let compiled = crate::CompiledPolicy::compile(&policy, &crate::Engines::default()).unwrap();
    let problems: Vec<_> = compiled.problems().iter().map(ToString::to_string).collect();
    let rule = "spec.overrideRules[0].overriders";
    assert_eq!(
        problems,
        [
            format!("{rule}.renderedCue: this program was built without CUE"),
            format!("{rule}.cue: this program was built without CUE"),
            format!("{rule}.cel: this program was built without CEL"),
        ]
    );
}

#[test]
fn evaluation_ends_at_the_deadline() {
    let policies = [overriding("a", &[json!({"cue": adds("/spec/a", 1)})])];
    let budget = EvaluationBudget {
        is_over: &|| true,
        ..EvaluationBudget::default()
    };
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let outcome = done(set(&policies).override_object(&attributes, &Answers::default(), &budget));
    assert_eq!(outcome.refusal.unwrap().reason, FailureReason::Deadline);
    let policies = [validating("a", json!([{"cue": "{}"}]))];
    let outcome = done(set(&policies).validate(&attributes, &Answers::default(), &budget));
    assert_eq!(outcome.refusals[0].reason, FailureReason::Deadline);
}

#[test]
fn an_unknown_namespace_fails_by_the_failure_policy() {
    let spec =
        json!({"namespaceSelector": {}, "overrideRules": [{"overriders": {"cue": adds("/spec/a", 1)}}]});
    let policy = policy("ClusterOverridePolicy", "a", spec);
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let outcome = overridden(std::slice::from_ref(&policy), &attributes);
    assert_eq!(outcome.refusal.unwrap().reason, FailureReason::Selection);
    let outcome = overridden(&[with_failure_policy(policy, "Ignore")], &attributes);
    assert_eq!((outcome.refusal, outcome.ignored.len()), (None, 1));
}

#[test]
fn a_failing_rule_for_another_operation_is_not_evaluated() {
    let rules = json!([{"targetOperations": ["UPDATE"], "overriders": {"cue": "no JSON"}}]);
    let policies = [policy(
        "ClusterOverridePolicy",
        "a",
        json!({"overrideRules": rules}),
    )];
    let pod = pod();
    let create = AdmissionAttributes::create(&pod);
    assert_eq!(overridden(&policies, &create).refusal, None);
    let update = AdmissionAttributes {
        operation: AdmissionOperation::Update,
        ..create
    };
    assert!(overridden(&policies, &update).refusal.is_some());
}

/// A gate that rejects the policy of a name, and counts evaluations.
struct RejectingGate(&'static str, std::sync::Mutex<(usize, usize)>);

impl crate::EvaluationGate for RejectingGate {
    fn enter(&self, policy: &crate::CompiledPolicy) -> bool {
        let enters = policy.key().name != self.0;
        self.1.lock().unwrap().0 += usize::from(enters);
        enters
    }

    fn leave(&self, _policy: &crate::CompiledPolicy) {
        self.1.lock().unwrap().1 += 1;
    }
}

#[test]
fn a_rejected_policy_is_skipped() {
    let gate = RejectingGate("out", std::sync::Mutex::default());
    let budget = EvaluationBudget {
        gate: &gate,
        ..EvaluationBudget::default()
    };
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let fails = json!({"cue": "patches: [1 / 0]"});
    let policies = [
        overriding("in", &[json!({"cue": adds("/spec/a", 1)})]),
        overriding("out", std::slice::from_ref(&fails)),
    ];
    let outcome = done(set(&policies).override_object(&attributes, &Answers::default(), &budget));
    assert_eq!(
        (outcome.refusal, outcome.steps.len(), outcome.asked.len()),
        (None, 1, 1)
    );
    let policies = [
        validating("out", json!([fails])),
        validating("in", json!([fails])),
    ];
    let outcome = done(set(&policies).validate(&attributes, &Answers::default(), &budget));
    assert_eq!((outcome.refusals.len(), outcome.asked.len()), (1, 1));
    assert_eq!(outcome.refusals[0].policy.name, "in");
    assert_eq!(
        *gate.1.lock().unwrap(),
        (2, 2),
        "each admitted policy leaves, also if it fails"
    );
}
