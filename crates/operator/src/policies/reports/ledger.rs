//! What this process was asked about and is not in reports yet.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use policy::{AdmissionAttributes, AdmissionOperation, PolicyKey, ValidationOutcome};
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;
use tracing::warn;
use windlass_cluster::{Clock, Index, Kind, worker::Queue};
use windlass_object::ObjectKey;

use super::{audited_object::AuditedObject, audited_rules::AuditedRules, judged::judged, writer::watch_of};
use crate::policies::snapshot::PolicySnapshot;

/// What this process was asked about and is not in reports yet, and for a while what rules did not object to: another replica may
/// be late with what they said before. It is bounded: what there is no room for is not reported.
pub(crate) struct AuditLedger {
    index: Arc<Index>,
    clock: Arc<dyn Clock>,
    dropped: Counter,
    noted: Mutex<NotedObjects>,
    /// The reports that may have to be written.
    queue: Arc<Queue<ObjectKey>>,
}

#[derive(Default)]
struct NotedObjects {
    /// By report.
    objects: HashMap<ObjectKey, NotedObject>,
    /// Whether it was said that there is no room.
    is_full: bool,
}

/// What is noted of an object.
#[derive(Clone, Debug)]
pub(super) struct NotedObject {
    pub(super) object: AuditedObject,
    pub(super) rules: AuditedRules,
    /// When it may be reported.
    pub(super) due: Instant,
    since: Instant,
}

/// How many objects are noted at the most.
const OBJECTS: usize = 2048;

/// How long it takes until it is known to the API server whether an object is created: others who are asked about it have so
/// long by default. The garbage collector deletes a report whose object is not there, and remembers that.
const CREATED: Duration = Duration::from_secs(10);

/// How long what comes of one object is gathered before it is written.
const GATHERED: Duration = Duration::from_secs(1);

// === impl AuditLedger ===

impl AuditLedger {
    /// An empty one. `dropped` counts objects for which there is no room.
    pub(crate) fn new(index: Arc<Index>, clock: Arc<dyn Clock>, dropped: Counter) -> Self {
        Self {
            index,
            clock,
            dropped,
            noted: Mutex::default(),
            queue: Arc::default(),
        }
    }

    /// The reports that may have to be written.
    pub(super) fn queue(&self) -> &Arc<Queue<ObjectKey>> {
        &self.queue
    }

    /// Notes what came of a request that `policies` were asked about. Never waits for anything.
    pub(in crate::policies) fn note(
        &self,
        attributes: &AdmissionAttributes<'_>,
        outcome: &ValidationOutcome,
        policies: &PolicySnapshot,
        is_asked: impl Fn(&PolicyKey) -> bool,
    ) {
        // Nothing is stored of what is refused.
        if !outcome.is_allowed() {
            return;
        }
        let Some(object) = AuditedObject::of(attributes) else {
            return;
        };
        let report = object.report();
        let is_served = watch_of(&Kind::from_key(&report)).is_some_and(|watch| !self.index.is_absent(&watch));
        if !is_served {
            return;
        }
        let has_report = self.index.find_indexed(&report).is_some();
        let is_noted = self.noted.lock().objects.contains_key(&report);
        let (operation, now) = (attributes.operation, self.clock.now());
        let rules = judged(
            outcome,
            policies,
            operation,
            is_asked,
            has_report || is_noted,
            now,
        );
        let is_news = rules.have_objections() || has_report;
        // Nobody has said anything else of what is new.
        if rules.is_empty() || (!is_news && operation == AdmissionOperation::Create) {
            return;
        }
        let pause = match operation {
            AdmissionOperation::Create => CREATED,
            _ => GATHERED,
        };
        self.add(report, object, rules, is_news.then_some(pause));
    }

    /// Notes this. It is to be written after a `pause`, if there is one.
    fn add(&self, report: ObjectKey, object: AuditedObject, rules: AuditedRules, pause: Option<Duration>) {
        let now = Instant::now();
        let due = now + pause.unwrap_or_default();
        let mut noted = self.noted.lock();
        if let Some(known) = noted.objects.get_mut(&report) {
            known.due = match known.rules.have_objections() {
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
                        "Too much to be reported: what policies audit is missing in reports until these are written"
                    );
                }
                return;
            }
            let since = now;
            let object = NotedObject {
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

    /// What is noted for a report.
    pub(super) fn find(&self, report: &ObjectKey) -> Option<NotedObject> {
        self.noted.lock().objects.get(report).cloned()
    }

    /// Whether anything is noted for a report.
    pub(super) fn has(&self, report: &ObjectKey) -> bool {
        self.noted.lock().objects.contains_key(report)
    }

    /// These are in the report. What rules did not object to is kept: it is not in it.
    pub(super) fn settle(&self, report: &ObjectKey, written: &AuditedRules) {
        let mut noted = self.noted.lock();
        let Some(known) = noted.objects.get_mut(report) else {
            return;
        };
        known
            .rules
            .retain(|rule, judgement| !judgement.objects() || written.find(rule) != Some(judgement));
        let (is_settled, is_empty) = (!known.rules.have_objections(), known.rules.is_empty());
        if is_empty {
            noted.objects.remove(report);
        }
        noted.is_full &= !is_settled;
    }

    /// Nothing is to be reported of this.
    pub(super) fn forget(&self, report: &ObjectKey) {
        self.noted.lock().objects.remove(report);
    }
}

// === impl NotedObjects ===

impl NotedObjects {
    /// Makes room for one more, if anything is noted that need not be written.
    fn make_room(&mut self) -> bool {
        let settled = self
            .objects
            .iter()
            .filter(|(_, noted)| !noted.rules.have_objections());
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
        AuditedObject::of(&AdmissionAttributes::create(&object)).unwrap()
    }

    fn said(verdict: RuleVerdict) -> AuditedRules {
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
        rules.note(rule, judgement);
        rules
    }

    #[tokio::test(start_paused = true)]
    async fn what_there_is_no_room_for_is_counted_and_what_is_written_makes_room() {
        let ledger = ledger();
        let failed = || said(RuleVerdict::Failed("no".to_owned()));
        let note = |uid, rules| {
            let object = audited(uid);
            ledger.add(object.report(), object, rules, None);
        };
        note(0, said(RuleVerdict::Passed));
        for uid in 1..=OBJECTS {
            note(uid, failed());
        }
        assert_eq!(ledger.dropped.get(), 0);
        assert!(!ledger.has(&audited(0).report()), "what passed has made room");
        note(OBJECTS + 1, failed());
        assert_eq!(ledger.dropped.get(), 1);
        // More of what is noted needs no room.
        note(1, failed());
        assert_eq!(ledger.dropped.get(), 1);
        ledger.settle(&audited(1).report(), &failed());
        note(OBJECTS + 1, failed());
        assert_eq!(ledger.dropped.get(), 1);
        assert!(ledger.has(&audited(OBJECTS + 1).report()));
        assert_eq!(ledger.noted.lock().objects.len(), OBJECTS);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_noted_while_it_was_written_is_written_next() {
        let ledger = ledger();
        let (object, report) = (audited(1), audited(1).report());
        let (one, other) = (
            RuleVerdict::Failed("1".to_owned()),
            RuleVerdict::Failed("2".to_owned()),
        );
        ledger.add(report.clone(), object.clone(), said(one.clone()), None);
        ledger.add(report.clone(), object.clone(), said(other.clone()), None);
        ledger.settle(&report, &said(one));
        assert_eq!(ledger.find(&report).unwrap().rules, said(other.clone()));
        ledger.settle(&report, &said(other));
        assert!(!ledger.has(&report));
        // What passed is known for a while.
        ledger.add(report.clone(), object, said(RuleVerdict::Passed), None);
        ledger.settle(&report, &said(RuleVerdict::Passed));
        assert_eq!(ledger.find(&report).unwrap().rules, said(RuleVerdict::Passed));
    }
}
