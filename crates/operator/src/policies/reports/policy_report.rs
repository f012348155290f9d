//! Reports as stored in the cluster: `wgpolicyk8s.io/v1alpha2` of the Kubernetes policy working group.

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

/// The content of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PolicyReport {
    /// Rules that object or failed, at most [`RESULTS`].
    pub(super) rules: AuditedRules,
    /// The number of results that did not fit.
    left_out: usize,
}

/// The most results of a report: with the longest messages these are about 50 kB.
const RESULTS: usize = 64;

/// How long an unchanged result keeps its old timestamp.
const STALE: SignedDuration = SignedDuration::from_mins(10);

/// The label and value of Windlass's reports.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass");

/// The `source` of each result.
const SOURCE: &str = "windlass";

/// The property of a result with the uid of its policy, which tells a deleted policy from a later one with
/// the same name.
const POLICY_UID: &str = "policyUID";

impl PolicyReport {
    /// Reads a report. Results of other sources are ignored.
    pub(super) fn read(report: &Value) -> Self {
        let mut rules = AuditedRules::default();
        for result in object::items(report, "/results") {
            if let Some((rule, judgement)) = read_result(result) {
                rules.record(rule, judgement);
            }
        }
        let left_out = object::annotation(report, names::RESULTS_LEFT_OUT);
        Self {
            rules,
            left_out: left_out.and_then(|count| count.parse().ok()).unwrap_or_default(),
        }
    }

    /// Returns the next content of the report, given the latest results.
    pub(super) fn updated(&self, mut rules: AuditedRules) -> Self {
        rules.retain(|_, judgement| judgement.is_reportable());
        let left_out = self.left_out.saturating_add(rules.keep_latest(RESULTS));
        Self { rules, left_out }
    }

    /// Reports whether `known` makes a write unnecessary. Unchanged results are rewritten only once they are
    /// stale.
    pub(super) fn is_covered_by(&self, known: &Self) -> bool {
        let is_covered = |(rule, judgement): (&AuditedRule, &RuleJudgement)| {
            known.rules.find(rule).is_some_and(|known| {
                known.verdict == judgement.verdict
                    && known.policy_uid == judgement.policy_uid
                    && judgement.at.duration_since(known.at) < STALE
            })
        };
        self.rules.iter().count() == known.rules.iter().count() && self.rules.iter().all(is_covered)
    }

    /// Returns a new report about an object.
    pub(super) fn new_object(&self, audited: &AuditedObject) -> Value {
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

    /// Returns the patch that turns the report `seen` into this one. It fails with a conflict if another
    /// client has changed the report.
    pub(super) fn patch_from(&self, seen: &Value) -> Patch {
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
                .filter(|(_, said)| result_fields(&said.verdict).0 == result);
            summary.insert(result.to_owned(), count.count().into());
        }
        summary.into()
    }

    fn results(&self) -> Value {
        let results = self.rules.iter().map(|(rule, judgement)| {
            let (result, message) = result_fields(&judgement.verdict);
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

/// Converts a verdict to `result` and `message`.
fn result_fields(verdict: &RuleVerdict) -> (&'static str, &str) {
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
        AuditedObject::from_attributes(&AdmissionAttributes::create(&object)).unwrap()
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
            rules.record(rule, judgement);
        }
        rules
    }

    fn failed() -> RuleVerdict {
        RuleVerdict::Failed("no".to_owned())
    }

    #[test]
    fn a_report_has_the_published_form_and_is_owned_by_its_object() {
        let verdicts = [
            (1, failed()),
            (2, RuleVerdict::Passed),
            (3, RuleVerdict::Errored("e".to_owned())),
        ];
        let report = PolicyReport::default()
            .updated(rules(&verdicts))
            .new_object(&audited());
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
    fn unchanged_results_are_rewritten_once_stale() {
        let known = PolicyReport::default().updated(rules(&[(0, failed())]));
        let again = |second, verdict| known.updated(rules(&[(second, verdict)]));
        assert!(again(599, failed()).is_covered_by(&known));
        assert!(!again(600, failed()).is_covered_by(&known));
        assert!(!again(1, RuleVerdict::Failed("other".to_owned())).is_covered_by(&known));
        assert!(!again(1, RuleVerdict::Passed).is_covered_by(&known));
    }

    #[test]
    fn other_content_of_a_report_is_kept() {
        let mut report = PolicyReport::default()
            .updated(rules(&[(0, failed())]))
            .new_object(&audited());
        report["metadata"]["resourceVersion"] = "5".into();
        report["metadata"]["labels"]["team"] = "a".into();
        let next = PolicyReport::read(&report).updated(rules(&[(1, failed()), (1, failed())]));
        let mut changed = report.clone();
        json_patch::patch(&mut changed, &next.patch_from(&report)).unwrap();
        assert_eq!(PolicyReport::read(&changed), next);
        assert_eq!(changed["metadata"], report["metadata"]);
        report["metadata"]["resourceVersion"] = "6".into();
        assert!(json_patch::patch(&mut report.clone(), &next.patch_from(&changed)).is_err());
    }

    proptest! {
        #[test]
        fn a_report_round_trips_and_has_at_most_the_maximum_of_results(
            seconds in prop::collection::vec(0..1000_i64, 1..200), length in 0..512_usize,
        ) {
            let verdict = RuleVerdict::Failed("é".repeat(length / 2));
            let verdicts: Vec<_> = seconds.iter().map(|second| (*second, verdict.clone())).collect();
            let next = PolicyReport::default().updated(rules(&verdicts));
            let mut report = next.new_object(&audited());
            prop_assert!(report.to_string().len() < 64 << 10);
            prop_assert_eq!(PolicyReport::read(&report), next.clone());
            prop_assert_eq!(next.left_out, seconds.len().saturating_sub(RESULTS));
            report["metadata"]["resourceVersion"] = "1".into();
            let more = PolicyReport::read(&report).updated(rules(&verdicts));
            let change = more.patch_from(&report);
            json_patch::patch(&mut report, &change).unwrap();
            prop_assert_eq!(PolicyReport::read(&report), more);
        }

        #[test]
        fn arbitrary_results_are_read_or_ignored(
            result in "[a-z]{0,5}", seconds in any::<i64>(), nanos in any::<i64>(), source in prop_oneof![Just("windlass"), Just("x")],
        ) {
            let report = json!({"results": [null, 1, {"source": source, "policy": "p", "result": result,
                "timestamp": {"seconds": seconds, "nanos": nanos}, "properties": {"policyUID": "u"}}, {"source": source}]});
            let read = PolicyReport::read(&report);
            prop_assert!(source == "windlass" || read == PolicyReport::default());
        }
    }
}
