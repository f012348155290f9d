//! What a request shows of an object, of all rules that audit.

use jiff::Timestamp;
use policy::{
    AdmissionOperation, CompiledPolicy, FailureReason, PolicyFailure, PolicyKey, ValidationOutcome,
    api::ValidationAction,
};
use windlass_object::text::shortened;

use super::audited_rules::{AuditedRule, AuditedRules, RuleJudgement, RuleVerdict};
use crate::policies::snapshot::PolicySnapshot;

/// The longest message of a result, in bytes.
const LONGEST: usize = 512;

/// What was said `at` a moment to a request, whose `operation` is this, by rules that audit. Those of policies that are not for
/// the object have passed, too: of them only `all` are told. Of a policy that is not asked nothing is known.
pub(super) fn judged(
    outcome: &ValidationOutcome,
    policies: &PolicySnapshot,
    operation: AdmissionOperation,
    is_asked: impl Fn(&PolicyKey) -> bool,
    all: bool,
    at: Timestamp,
) -> AuditedRules {
    let mut rules = AuditedRules::default();
    for state in policies.policies.values() {
        let Ok(policy) = &state.compiled else { continue };
        let audits = policy.has_action(ValidationAction::Audit) && policy.acts_on(operation);
        if !audits || !is_asked(policy.key()) {
            continue;
        }
        let failures = || outcome.ignored.iter().chain(&outcome.refusals);
        let mut failures = failures()
            .filter(|failure| failure.policy == *policy.key())
            .peekable();
        if !all && failures.peek().is_none() && !outcome.asked.contains(policy.key()) {
            continue;
        }
        for (rule, verdict) in of_policy(policy, outcome, &failures.collect::<Vec<_>>(), operation) {
            let judgement = RuleJudgement {
                at,
                verdict,
                policy_uid: state.version.uid.clone(),
            };
            let policy = policy.key().name.clone();
            rules.note(AuditedRule { policy, rule }, judgement);
        }
    }
    rules
}

/// What each rule of a policy says, which failed at these.
fn of_policy(
    policy: &CompiledPolicy,
    outcome: &ValidationOutcome,
    failures: &[&PolicyFailure],
    operation: AdmissionOperation,
) -> Vec<(String, RuleVerdict)> {
    let failed = |rule| {
        let failure = failures.iter().find(|failure| failure.rule == rule)?;
        Some(RuleVerdict::Errored(at_what(failure.reason)))
    };
    let whole = failed(None);
    if let Some(verdict) = whole {
        // Nothing is known of its rules.
        return vec![(String::new(), verdict)];
    }
    let mut verdicts = vec![(String::new(), RuleVerdict::Passed)];
    for rule in policy.rules_for(operation) {
        let mut findings = outcome.findings.iter();
        let finding = findings.find(|finding| finding.policy == *policy.key() && finding.rule == rule);
        let objection =
            finding.map(|finding| RuleVerdict::Failed(shortened(finding.reason.clone(), LONGEST)));
        let verdict = objection
            .or_else(|| failed(Some(rule)))
            .unwrap_or(RuleVerdict::Passed);
        verdicts.push((format!("validateRules[{rule}]"), verdict));
    }
    verdicts
}

/// At what a policy failed, without what it said: that may have data of objects which others who read the report must not see.
fn at_what(reason: FailureReason) -> String {
    let what = match reason {
        FailureReason::Policy => return "the policy is wrong: see its status".to_owned(),
        FailureReason::Selection => "selecting the object failed".to_owned(),
        FailureReason::Reference => "what it refers to cannot be read".to_owned(),
        FailureReason::Step(step) => format!("{step} failed"),
        FailureReason::Deadline => "the time for the request ran out".to_owned(),
    };
    format!("{what}: see the log of windlass-policies")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use policy::{AdmissionAttributes, Answers, Engines, EvaluationBudget, PolicyEvaluation};
    use serde_json::{Value, json};
    use windlass_object::ObjectKey;

    use super::*;
    use crate::policies::snapshot::{PolicyState, PolicyVersion};

    fn policy(name: &str, actions: &Value, rules: &Value) -> Value {
        json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterValidatePolicy",
            "metadata": {"name": name, "uid": format!("u-{name}"), "generation": 1},
            "spec": {
                "validationActions": actions,
                "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap",
                    "labelSelector": {"matchLabels": {"app": "a"}}}],
                "validateRules": rules,
            },
        })
    }

    fn snapshot(policies: &[Value]) -> PolicySnapshot {
        let states = policies.iter().map(|policy| {
            let compiled = CompiledPolicy::compile(policy, &Engines::built_in()).map(Arc::new);
            let state = PolicyState::new(PolicyVersion::of(policy), compiled);
            (ObjectKey::from_object(policy).unwrap(), Arc::new(state))
        });
        PolicySnapshot::new(states.collect::<BTreeMap<_, _>>(), true)
    }

    fn verdicts(snapshot: &PolicySnapshot, request: &Value, all: bool) -> Vec<(String, String, RuleVerdict)> {
        let attributes = AdmissionAttributes::from_request(request, None).unwrap();
        let evaluation =
            snapshot
                .set
                .validate(&attributes, &Answers::default(), &EvaluationBudget::default());
        let PolicyEvaluation::Done(outcome) = evaluation else {
            panic!("{evaluation:?}")
        };
        let operation = attributes.operation;
        let rules = judged(
            &outcome,
            snapshot,
            operation,
            |_| true,
            all,
            Timestamp::UNIX_EPOCH,
        );
        let told = rules.iter().map(|(rule, said)| {
            assert_eq!(said.policy_uid, format!("u-{}", rule.policy));
            (rule.policy.clone(), rule.rule.clone(), said.verdict.clone())
        });
        told.collect()
    }

    #[test]
    fn each_rule_that_audits_and_was_asked_is_told_and_no_message_of_a_failure() {
        let needs = |name: &str, operations: &Value| {
            json!({"targetOperations": operations, "cel": {"validations": [
                {"expression": format!("has(object.data.{name})"), "message": format!("{name} is missing")}]}})
        };
        let rules = json!([
            needs("a", &json!(["CREATE"])),
            needs("b", &json!(["CREATE", "UPDATE"]))
        ]);
        let broken =
            json!([{"cel": {"validations": [{"expression": "object.data.secret.startsWith('x')"}]}}]);
        let snapshot = snapshot(&[
            policy("audits", &json!(["Audit"]), &rules),
            policy("breaks", &json!(["Audit"]), &broken),
            policy("denies", &json!(["Deny"]), &rules),
        ]);
        let object = |app: &str, data: &Value| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": {"namespace": "n", "name": "c", "labels": {"app": app}}})
        };
        let of = |policy: &str, rule: &str, verdict| (policy.to_owned(), rule.to_owned(), verdict);
        let request = json!({"operation": "CREATE", "object": object("a", &json!({"b": "1"}))});
        let errored = "cel failed: see the log of windlass-policies".to_owned();
        assert_eq!(
            verdicts(&snapshot, &request, false),
            [
                of("audits", "", RuleVerdict::Passed),
                of(
                    "audits",
                    "validateRules[0]",
                    RuleVerdict::Failed("a is missing".to_owned())
                ),
                of("audits", "validateRules[1]", RuleVerdict::Passed),
                of("breaks", "", RuleVerdict::Passed),
                of("breaks", "validateRules[0]", RuleVerdict::Errored(errored)),
            ]
        );
        // What is selected no more has passed, but for rules of other operations.
        let object = object("other", &json!({}));
        let request = json!({"operation": "UPDATE", "object": object, "oldObject": object});
        assert_eq!(verdicts(&snapshot, &request, false), []);
        let told = verdicts(&snapshot, &request, true);
        assert!(told.iter().all(|(.., verdict)| *verdict == RuleVerdict::Passed));
        let rules: Vec<_> = told
            .iter()
            .map(|(policy, rule, _)| format!("{policy} {rule}"))
            .collect();
        assert_eq!(
            rules,
            [
                "audits ",
                "audits validateRules[1]",
                "breaks ",
                "breaks validateRules[0]"
            ]
        );
    }
}
