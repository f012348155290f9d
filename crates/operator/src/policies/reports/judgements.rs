//! The results of auditing rules for one request.

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

/// Returns the results of all auditing rules for a request. The rules of policies that do not select the
/// object have passed, but are returned only with `all`. A policy that was not evaluated has no results.
pub(super) fn judgements(
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
        let audits = policy.has_action(ValidationAction::Audit) && policy.applies_to(operation);
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
        for (rule, verdict) in policy_judgements(policy, outcome, &failures.collect::<Vec<_>>(), operation) {
            let judgement = RuleJudgement {
                at,
                verdict,
                policy_uid: state.version.uid.clone(),
            };
            let policy = policy.key().name.clone();
            rules.record(AuditedRule { policy, rule }, judgement);
        }
    }
    rules
}

/// Returns the result of each rule of a policy with these failures.
fn policy_judgements(
    policy: &CompiledPolicy,
    outcome: &ValidationOutcome,
    failures: &[&PolicyFailure],
    operation: AdmissionOperation,
) -> Vec<(String, RuleVerdict)> {
    let failed = |rule| {
        let failure = failures.iter().find(|failure| failure.rule == rule)?;
        Some(RuleVerdict::Errored(describe_failure(failure.reason)))
    };
    let whole = failed(None);
    if let Some(verdict) = whole {
        // A failure of the whole policy leaves no results of its rules.
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

/// Describes a failure without its message, which may contain data that readers of the report must not see.
fn describe_failure(reason: FailureReason) -> String {
    let what = match reason {
        FailureReason::Policy => return "invalid policy: see its status".to_owned(),
        FailureReason::Selection => "selecting the object failed".to_owned(),
        FailureReason::Reference => "reading referenced data failed".to_owned(),
        FailureReason::Step(step) => format!("{step} failed"),
        FailureReason::Deadline => "the time limit of the request ran out".to_owned(),
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
            let state = PolicyState::new(PolicyVersion::from_object(policy), compiled);
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
        let rules = judgements(
            &outcome,
            snapshot,
            operation,
            |_| true,
            all,
            Timestamp::UNIX_EPOCH,
        );
        let results = rules.iter().map(|(rule, said)| {
            assert_eq!(said.policy_uid, format!("u-{}", rule.policy));
            (rule.policy.clone(), rule.rule.clone(), said.verdict.clone())
        });
        results.collect()
    }

    #[test]
    fn each_evaluated_audit_rule_has_a_result_without_failure_messages() {
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
        // A policy that does not select the object has passed, except rules for other operations.
        let object = object("other", &json!({}));
        let request = json!({"operation": "UPDATE", "object": object, "oldObject": object});
        assert_eq!(verdicts(&snapshot, &request, false), []);
        let results = verdicts(&snapshot, &request, true);
        assert!(
            results
                .iter()
                .all(|(.., verdict)| *verdict == RuleVerdict::Passed)
        );
        let rules: Vec<_> = results
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
