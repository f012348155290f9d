//! Audit results that are not in reports yet.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use policy::{AdmissionAttributes, AdmissionOperation, PolicyKey, ValidationOutcome};
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;
use tracing::warn;
use windlass_cluster::{Clock, Index, Kind, worker::Queue};
use windlass_object::ObjectKey;

use super::{
    audited_object::AuditedObject, audited_rules::AuditedRules, judgements::judgements, writer::report_watch,
};
use crate::policies::snapshot::PolicySnapshot;

/// Audit results of this process that are not in reports yet. Passed rules are kept for a while, too: another
/// replica may write an older objection late. The size is bounded, and results beyond it are not reported.
pub(crate) struct AuditLedger {
    index: Arc<Index>,
    clock: Arc<dyn Clock>,
    dropped: Counter,
    noted: Mutex<PendingObjects>,
    /// The reports to write.
    queue: Arc<Queue<ObjectKey>>,
}

#[derive(Default)]
struct PendingObjects {
    /// Unwritten results by the key of their report.
    objects: HashMap<ObjectKey, PendingObject>,
    /// Whether the lack of space was logged.
    is_full: bool,
}

/// The results for one object.
#[derive(Clone, Debug)]
pub(super) struct PendingObject {
    pub(super) object: AuditedObject,
    pub(super) rules: AuditedRules,
    /// When they may be written.
    pub(super) due: Instant,
    since: Instant,
}

/// The most objects with results.
const OBJECTS: usize = 2048;

/// How long a report about a new object waits: until then other webhooks, at their default timeout, can still
/// reject the object. The garbage collector would delete a report whose object does not exist, and remember
/// its absence.
const CREATED: Duration = Duration::from_secs(10);

/// How long results for one object are collected before they are written.
const GATHERED: Duration = Duration::from_secs(1);

impl AuditLedger {
    /// Creates an empty ledger. `dropped` counts objects that did not fit.
    pub(crate) fn new(index: Arc<Index>, clock: Arc<dyn Clock>, dropped: Counter) -> Self {
        Self {
            index,
            clock,
            dropped,
            noted: Mutex::default(),
            queue: Arc::default(),
        }
    }

    /// Returns the queue of reports to write.
    pub(super) fn queue(&self) -> &Arc<Queue<ObjectKey>> {
        &self.queue
    }

    /// Records the results of a request that `policies` evaluated. Never blocks.
    pub(in crate::policies) fn record(
        &self,
        attributes: &AdmissionAttributes<'_>,
        outcome: &ValidationOutcome,
        policies: &PolicySnapshot,
        is_asked: impl Fn(&PolicyKey) -> bool,
    ) {
        // A denied object is not stored.
        if !outcome.is_allowed() {
            return;
        }
        let Some(object) = AuditedObject::from_attributes(attributes) else {
            return;
        };
        let report = object.report();
        let is_served =
            report_watch(&Kind::from_key(&report)).is_some_and(|watch| !self.index.is_absent(&watch));
        if !is_served {
            return;
        }
        let has_report = self.index.find_indexed(&report).is_some();
        let is_noted = self.noted.lock().objects.contains_key(&report);
        let (operation, now) = (attributes.operation, self.clock.now());
        let rules = judgements(
            outcome,
            policies,
            operation,
            is_asked,
            has_report || is_noted,
            now,
        );
        let is_news = rules.has_violations() || has_report;
        // No report can have an earlier result for a new object.
        if rules.is_empty() || (!is_news && operation == AdmissionOperation::Create) {
            return;
        }
        let pause = match operation {
            AdmissionOperation::Create => CREATED,
            _ => GATHERED,
        };
        self.add(report, object, rules, is_news.then_some(pause));
    }

    /// Adds results, to be written after `pause` if there is one.
    fn add(&self, report: ObjectKey, object: AuditedObject, rules: AuditedRules, pause: Option<Duration>) {
        let now = Instant::now();
        let due = now + pause.unwrap_or_default();
        let mut noted = self.noted.lock();
        if let Some(known) = noted.objects.get_mut(&report) {
            known.due = match known.rules.has_violations() {
                true => known.due.min(due),
                false => due,
            };
            known.rules.fold(rules);
            known.since = now;
        } else {
            if noted.objects.len() >= OBJECTS && !noted.make_room() {
                self.dropped.inc();
                if !std::mem::replace(&mut noted.is_full, true) {
                    warn!(
                        objects = OBJECTS,
                        "Too many audit results: reports miss some until these are written"
                    );
                }
                return;
            }
            let since = now;
            let object = PendingObject {
                object,
                rules,
                due,
                since,
            };
            noted.objects.insert(report.clone(), object);
        }
        drop(noted);
        if let Some(pause) = pause {
            self.queue.add_after(report, pause);
        }
    }

    /// Returns the results for a report.
    pub(super) fn find(&self, report: &ObjectKey) -> Option<PendingObject> {
        self.noted.lock().objects.get(report).cloned()
    }

    /// Reports whether there are results for a report.
    pub(super) fn contains(&self, report: &ObjectKey) -> bool {
        self.noted.lock().objects.contains_key(report)
    }

    /// Removes violations that were written to the report. Passed rules stay, since reports do not contain
    /// them.
    pub(super) fn mark_written(&self, report: &ObjectKey, written: &AuditedRules) {
        let mut noted = self.noted.lock();
        let Some(known) = noted.objects.get_mut(report) else {
            return;
        };
        known
            .rules
            .retain(|rule, judgement| !judgement.is_reportable() || written.find(rule) != Some(judgement));
        let (is_settled, is_empty) = (!known.rules.has_violations(), known.rules.is_empty());
        if is_empty {
            noted.objects.remove(report);
        }
        noted.is_full &= !is_settled;
    }

    /// Drops the results for a report.
    pub(super) fn forget(&self, report: &ObjectKey) {
        self.noted.lock().objects.remove(report);
    }
}

impl PendingObjects {
    /// Makes room for one more object by dropping the oldest object without violations. Returns whether there
    /// was one.
    fn make_room(&mut self) -> bool {
        let settled = self
            .objects
            .iter()
            .filter(|(_, noted)| !noted.rules.has_violations());
        let oldest = settled.min_by_key(|(_, noted)| noted.since);
        let Some(oldest) = oldest.map(|(report, _)| report.clone()) else {
            return false;
        };
        self.objects.remove(&oldest);
        true
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use windlass_cluster::SystemClock;

    use super::*;
    use crate::policies::reports::audited_rules::{AuditedRule, RuleJudgement, RuleVerdict};

    fn ledger() -> AuditLedger {
        AuditLedger::new(Arc::new(Index::new()), Arc::new(SystemClock), Counter::default())
    }

    fn audited(uid: usize) -> AuditedObject {
        let object =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": uid.to_string()}});
        AuditedObject::from_attributes(&AdmissionAttributes::create(&object)).unwrap()
    }

    fn result(verdict: RuleVerdict) -> AuditedRules {
        let mut rules = AuditedRules::default();
        let rule = AuditedRule {
            policy: "p".to_owned(),
            rule: String::new(),
        };
        let judgement = RuleJudgement {
            at: Timestamp::UNIX_EPOCH,
            verdict,
            policy_uid: "u".to_owned(),
        };
        rules.record(rule, judgement);
        rules
    }

    #[tokio::test(start_paused = true)]
    async fn objects_beyond_the_limit_are_counted_and_written_ones_make_room() {
        let ledger = ledger();
        let failed = || result(RuleVerdict::Failed("no".to_owned()));
        let note = |uid, rules| {
            let object = audited(uid);
            ledger.add(object.report(), object, rules, None);
        };
        note(0, result(RuleVerdict::Passed));
        for uid in 1..=OBJECTS {
            note(uid, failed());
        }
        assert_eq!(ledger.dropped.get(), 0);
        assert!(!ledger.contains(&audited(0).report()), "passed results make room");
        note(OBJECTS + 1, failed());
        assert_eq!(ledger.dropped.get(), 1);
        // Further results for a known object need no room.
        note(1, failed());
        assert_eq!(ledger.dropped.get(), 1);
        ledger.mark_written(&audited(1).report(), &failed());
        note(OBJECTS + 1, failed());
        assert_eq!(ledger.dropped.get(), 1);
        assert!(ledger.contains(&audited(OBJECTS + 1).report()));
        assert_eq!(ledger.noted.lock().objects.len(), OBJECTS);
    }

    #[tokio::test(start_paused = true)]
    async fn results_added_during_a_write_stay_in_the_ledger() {
        let ledger = ledger();
        let (object, report) = (audited(1), audited(1).report());
        let (one, other) = (
            RuleVerdict::Failed("1".to_owned()),
            RuleVerdict::Failed("2".to_owned()),
        );
        ledger.add(report.clone(), object.clone(), result(one.clone()), None);
        ledger.add(report.clone(), object.clone(), result(other.clone()), None);
        ledger.mark_written(&report, &result(one));
        assert_eq!(ledger.find(&report).unwrap().rules, result(other.clone()));
        ledger.mark_written(&report, &result(other));
        assert!(!ledger.contains(&report));
        // Passed rules are kept for a while.
        ledger.add(report.clone(), object, result(RuleVerdict::Passed), None);
        ledger.mark_written(&report, &result(RuleVerdict::Passed));
        assert_eq!(ledger.find(&report).unwrap().rules, result(RuleVerdict::Passed));
    }
}
