//! Reports as the cluster has them: `wgpolicyk8s.io/v1alpha2` of the Kubernetes policy working group.

use jiff::{SignedDuration, Timestamp};
use json_patch::Patch;
use serde_json::{Map, Value, json};
use windlass_object::{
    names, object,
    patch::{changed_entries, put, test},
};

use super::{
    audited_object::AuditedObject,
    audited_rules::{AuditedRule, AuditedRules, RuleJudgement, RuleVerdict},
};

/// What a report says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PolicyReport {
    /// What rules object to, and no more than [`RESULTS`].
    pub(super) rules: AuditedRules,
    /// How many results were left out of it.
    left_out: usize,
}

/// The most results of a report: with the longest messages it has about 50 kB.
const RESULTS: usize = 64;

/// How old a result gets that is found again and again before its time is written anew.
const STALE: SignedDuration = SignedDuration::from_mins(10);

/// Under which name this label and value say that a report is ours.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass");

/// The name in each result of who found it.
const SOURCE: &str = "windlass";

/// In the properties of a result: the uid of its policy. Another of its name did not say it.
const POLICY_UID: &str = "policyUID";

// === impl PolicyReport ===

impl PolicyReport {
    /// Reads what a report says. Results of others are not looked at.
    pub(super) fn read(report: &Value) -> Self {
        let mut rules = AuditedRules::default();
        for result in object::items(report, "/results") {
            if let Some((rule, judgement)) = read_result(result) {
                rules.note(rule, judgement);
            }
        }
        let left_out = object::annotation(report, names::RESULTS_LEFT_OUT);
        Self {
            rules,
            left_out: left_out.and_then(|count| count.parse().ok()).unwrap_or_default(),
        }
    }

    /// What it is to say when this is what was said last.
    pub(super) fn next(&self, mut rules: AuditedRules) -> Self {
        rules.retain(|_, judgement| judgement.objects());
        let left_out = self.left_out.saturating_add(rules.keep_latest(RESULTS));
        Self { rules, left_out }
    }

    /// Whether one that says this is worth no write where `known` is there. That the same was found again is told now and then.
    pub(super) fn is_told_by(&self, known: &Self) -> bool {
        let is_told = |(rule, judgement): (&AuditedRule, &RuleJudgement)| {
            known.rules.find(rule).is_some_and(|known| {
                known.verdict == judgement.verdict
                    && known.policy_uid == judgement.policy_uid
                    && judgement.at.duration_since(known.at) < STALE
            })
        };
        self.rules.iter().count() == known.rules.iter().count() && self.rules.iter().all(is_told)
    }

    /// A new one, about this object.
    pub(super) fn about(&self, audited: &AuditedObject) -> Value {
        let key = audited.report();
        let (label, value) = MANAGED_BY;
        let mut metadata = json!({
            "name": key.name, "labels": {label: value}, "ownerReferences": [audited.owner()],
        });
        if let Some(namespace) = key.namespace {
            metadata["namespace"] = namespace.into();
        }
        if self.left_out > 0 {
            metadata["annotations"] = self.annotations();
        }
        json!({
            "apiVersion": key.api_version, "kind": key.kind, "metadata": metadata,
            "scope": audited.reference(), "summary": self.summary(), "results": self.results(),
        })
    }

    /// What makes a report say this that was `seen` so. It fails where somebody else has written since.
    pub(super) fn change_of(&self, seen: &Value) -> Patch {
        let version = seen.pointer("/metadata/resourceVersion").unwrap_or(&Value::Null);
        let mut operations = vec![
            test("/metadata/resourceVersion", version),
            put("/summary", self.summary()),
            put("/results", self.results()),
        ];
        if self.left_out > 0 {
            operations.extend(changed_entries(
                seen,
                "/metadata/annotations",
                &self.annotations(),
            ));
        }
        Patch(operations)
    }

    fn annotations(&self) -> Value {
        json!({names::RESULTS_LEFT_OUT: self.left_out.to_string()})
    }

    fn summary(&self) -> Value {
        let mut summary = Map::new();
        for result in ["pass", "fail", "warn", "error", "skip"] {
            let count = self
                .rules
                .iter()
                .filter(|(_, said)| result_of(&said.verdict).0 == result);
            summary.insert(result.to_owned(), count.count().into());
        }
        summary.into()
    }

    fn results(&self) -> Value {
        let results = self.rules.iter().map(|(rule, judgement)| {
            let (result, message) = result_of(&judgement.verdict);
            let mut written = json!({
                "source": SOURCE, "policy": rule.policy, "result": result, "message": message,
                "timestamp": {
                    "seconds": judgement.at.as_second(), "nanos": judgement.at.subsec_nanosecond(),
                },
                "properties": {POLICY_UID: judgement.policy_uid},
            });
            if !rule.rule.is_empty() {
                written["rule"] = rule.rule.as_str().into();
            }
            written
        });
        results.collect()
    }
}

/// A verdict as reports write it, and its message.
fn result_of(verdict: &RuleVerdict) -> (&'static str, &str) {
    match verdict {
        RuleVerdict::Passed => ("pass", ""),
        RuleVerdict::Failed(message) => ("fail", message),
        RuleVerdict::Errored(message) => ("error", message),
    }
}

fn read_result(result: &Value) -> Option<(AuditedRule, RuleJudgement)> {
    let text = |pointer| object::text(result, pointer).unwrap_or_default().to_owned();
    let verdict = match text("/result").as_str() {
        "fail" => RuleVerdict::Failed(text("/message")),
        "error" => RuleVerdict::Errored(text("/message")),
        _ => return None,
    };
    let number = |pointer| {
        result
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    let nanoseconds = i32::try_from(number("/timestamp/nanos")).ok()?;
    let rule = AuditedRule {
        policy: object::text(result, "/policy")?.to_owned(),
        rule: text("/rule"),
    };
    let judgement = RuleJudgement {
        at: Timestamp::new(number("/timestamp/seconds"), nanoseconds).ok()?,
        verdict,
        policy_uid: object::text(result, &format!("/properties/{POLICY_UID}"))?.to_owned(),
    };
    (text("/source") == SOURCE).then_some((rule, judgement))
}

#[cfg(test)]
mod tests {
    use policy::AdmissionAttributes;
    use proptest::prelude::*;

    use super::*;

    fn audited() -> AuditedObject {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "n", "name": "c", "uid": "u"}});
        AuditedObject::of(&AdmissionAttributes::create(&object)).unwrap()
    }

    fn rules(verdicts: &[(i64, RuleVerdict)]) -> AuditedRules {
        let mut rules = AuditedRules::default();
        for (index, (second, verdict)) in verdicts.iter().enumerate() {
            let rule = AuditedRule {
                policy: "p".to_owned(),
                rule: format!("validateRules[{index}]"),
            };
            let judgement = RuleJudgement {
                at: Timestamp::new(*second, 7).unwrap(),
                verdict: verdict.clone(),
                policy_uid: "u-p".to_owned(),
            };
            rules.note(rule, judgement);
        }
        rules
    }

    fn failed() -> RuleVerdict {
        RuleVerdict::Failed("no".to_owned())
    }

    #[test]
    fn a_report_is_of_the_published_form_and_owned_by_its_object() {
        let verdicts = [
            (1, failed()),
            (2, RuleVerdict::Passed),
            (3, RuleVerdict::Errored("e".to_owned())),
        ];
        let report = PolicyReport::default().next(rules(&verdicts)).about(&audited());
        let expected = json!({
            "apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport",
            "metadata": {
                "namespace": "n", "name": "windlass-u", "labels": {"app.kubernetes.io/managed-by": "windlass"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}],
            },
            "scope": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "c", "uid": "u"},
            "summary": {"pass": 0, "fail": 1, "warn": 0, "error": 1, "skip": 0},
            "results": [
                {"source": "windlass", "policy": "p", "rule": "validateRules[0]", "result": "fail", "message": "no",
                 "timestamp": {"seconds": 1, "nanos": 7}, "properties": {"policyUID": "u-p"}},
                {"source": "windlass", "policy": "p", "rule": "validateRules[2]", "result": "error", "message": "e",
                 "timestamp": {"seconds": 3, "nanos": 7}, "properties": {"policyUID": "u-p"}},
            ],
        });
        assert_eq!(report, expected);
    }

    #[test]
    fn that_the_same_is_found_again_is_written_now_and_then() {
        let known = PolicyReport::default().next(rules(&[(0, failed())]));
        let again = |second, verdict| known.next(rules(&[(second, verdict)]));
        assert!(again(599, failed()).is_told_by(&known));
        assert!(!again(600, failed()).is_told_by(&known));
        assert!(!again(1, RuleVerdict::Failed("other".to_owned())).is_told_by(&known));
        assert!(!again(1, RuleVerdict::Passed).is_told_by(&known));
    }

    #[test]
    fn what_others_have_written_into_a_report_stays() {
        let mut report = PolicyReport::default()
            .next(rules(&[(0, failed())]))
            .about(&audited());
        report["metadata"]["resourceVersion"] = "5".into();
        report["metadata"]["labels"]["team"] = "a".into();
        let next = PolicyReport::read(&report).next(rules(&[(1, failed()), (1, failed())]));
        let mut changed = report.clone();
        json_patch::patch(&mut changed, &next.change_of(&report)).unwrap();
        assert_eq!(PolicyReport::read(&changed), next);
        assert_eq!(changed["metadata"], report["metadata"]);
        report["metadata"]["resourceVersion"] = "6".into();
        assert!(json_patch::patch(&mut report.clone(), &next.change_of(&changed)).is_err());
    }

    proptest! {
        #[test]
        fn a_report_is_read_as_it_was_written_and_never_too_long(
            seconds in prop::collection::vec(0..1000_i64, 1..200), length in 0..512_usize,
        ) {
            let verdict = RuleVerdict::Failed("é".repeat(length / 2));
            let verdicts: Vec<_> = seconds.iter().map(|second| (*second, verdict.clone())).collect();
            let next = PolicyReport::default().next(rules(&verdicts));
            let mut report = next.about(&audited());
            prop_assert!(report.to_string().len() < 64 << 10);
            prop_assert_eq!(PolicyReport::read(&report), next.clone());
            prop_assert_eq!(next.left_out, seconds.len().saturating_sub(RESULTS));
            report["metadata"]["resourceVersion"] = "1".into();
            let more = PolicyReport::read(&report).next(rules(&verdicts));
            let change = more.change_of(&report);
            json_patch::patch(&mut report, &change).unwrap();
            prop_assert_eq!(PolicyReport::read(&report), more);
        }

        #[test]
        fn whatever_somebody_else_writes_is_read_or_left(
            result in "[a-z]{0,5}", seconds in any::<i64>(), nanos in any::<i64>(), source in prop_oneof![Just("windlass"), Just("x")],
        ) {
            let report = json!({"results": [null, 1, {"source": source, "policy": "p", "result": result,
                "timestamp": {"seconds": seconds, "nanos": nanos}, "properties": {"policyUID": "u"}}, {"source": source}]});
            let read = PolicyReport::read(&report);
            prop_assert!(source == "windlass" || read == PolicyReport::default());
        }
    }
}
