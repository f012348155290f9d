//! Repairs of objects that other clients keep changing or deleting, with backoff.
//!
//! The first [`BURST`] repairs of an object are immediate; each is forgotten after [`FORGET_AFTER`]. After that
//! each repair waits twice as long as the previous one, up to [`MAX_DELAY`]. Occasional writes by other
//! clients are therefore always reverted immediately, and two controllers that revert each other's writes
//! cannot overload an API server. A deleted object, or a Service with another selector, makes calls fail
//! until it is repaired: for those the longest pause is [`MAX_TRAFFIC_DELAY`].

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_object::ObjectKey;

use crate::kind::{Kind, kinds};

/// The number of immediate repairs.
const BURST: u32 = 20;

/// The time after which a repair is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// The delay of the first repair after the burst.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest delay of a repair.
const MAX_DELAY: Duration = Duration::from_secs(300);

/// The longest delay of a repair without which calls may fail.
const MAX_TRAFFIC_DELAY: Duration = Duration::from_secs(10);

/// The number of repairs that is first reported; after that, every doubling is.
const REPORT_FROM: u64 = 8;

/// An object that another client keeps changing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairContest {
    /// Key of the object.
    pub object: ObjectKey,
    /// The last writer, according to the managed fields.
    pub by: Option<String>,
    /// The number of repairs.
    pub repairs: u64,
    /// The time until the next repair; zero if it is done or due.
    pub wait: Option<Duration>,
    /// Whether to report an event: the number of repairs has doubled.
    pub is_news: bool,
}

/// A change by another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interference<'a> {
    /// The object was deleted.
    Deletion,
    /// The object was changed.
    Edit {
        /// The writer, according to the managed fields.
        by: Option<&'a str>,
    },
}

/// The repairs of all objects.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    objects: Mutex<HashMap<ObjectKey, RepairedObject>>,
}

/// The repairs of one object.
#[derive(Debug)]
struct RepairedObject {
    owner: String,
    by: Option<String>,
    repairs: u64,
    /// The number of repairs that were not forgotten at the time of the last one.
    recent: u32,
    last: Instant,
    /// The maximum delay of the next repair.
    max_delay: Duration,
    /// Whether a repair is waiting.
    waits: bool,
    /// The number of repairs when it was last reported.
    reported: u64,
}

impl Repairs {
    /// Reports whether `object`, which another client has changed or deleted, may be repaired now.
    pub(super) fn may_repair(
        &self,
        object: &ObjectKey,
        owner: &str,
        change: Interference<'_>,
        now: Instant,
    ) -> bool {
        let mut objects = self.objects.lock();
        let repaired = objects
            .entry(object.clone())
            .or_insert_with(|| RepairedObject::new(owner, now));
        // A deletion does not record its client.
        if let Interference::Edit { by: Some(by) } = change {
            repaired.by = Some(by.to_owned());
        }
        let costs_calls = change == Interference::Deletion || Kind::from_key(object) == kinds::SERVICE;
        repaired.max_delay = if costs_calls { MAX_TRAFFIC_DELAY } else { MAX_DELAY };
        repaired.waits = !repaired.wait(now).is_zero();
        !repaired.waits
    }

    pub(super) fn record_repair(&self, object: &ObjectKey, now: Instant) {
        if let Some(repaired) = self.objects.lock().get_mut(object) {
            repaired.recent = repaired.recent_at(now) + 1;
            repaired.repairs += 1;
            repaired.last = now;
        }
    }

    /// Records that the object is up to date.
    pub(super) fn record_settled(&self, object: &ObjectKey) {
        if let Some(repaired) = self.objects.lock().get_mut(object) {
            repaired.waits = false;
        }
    }

    /// Forgets an object that is no longer applied.
    pub(super) fn forget(&self, object: &ObjectKey) {
        self.objects.lock().remove(object);
    }

    /// Returns the contested objects of `owner`. Each doubling is reported once.
    pub(super) fn contested(&self, owner: &str, now: Instant) -> Vec<RepairContest> {
        let mut objects = self.objects.lock();
        objects.retain(|_, repaired| repaired.recent_at(now) > 0);
        let own = objects.iter_mut().filter(|(_, repaired)| repaired.owner == owner);
        let mut contested: Vec<_> = own
            .filter_map(|(object, repaired)| {
                let is_news = repaired.repairs >= REPORT_FROM && repaired.repairs >= 2 * repaired.reported;
                if is_news {
                    repaired.reported = repaired.repairs;
                }
                // A due repair runs now, unless the reconciliation waits for another object first.
                let wait = repaired.waits.then(|| repaired.wait(now));
                let wait = wait.filter(|wait| !wait.is_zero());
                (is_news || wait.is_some()).then(|| RepairContest {
                    object: object.clone(),
                    by: repaired.by.clone(),
                    repairs: repaired.repairs,
                    wait,
                    is_news,
                })
            })
            .collect();
        contested.sort_by(|one, other| one.object.cmp(&other.object));
        contested
    }
}

impl RepairedObject {
    fn new(owner: &str, now: Instant) -> Self {
        Self {
            owner: owner.to_owned(),
            by: None,
            repairs: 0,
            recent: 0,
            last: now,
            max_delay: MAX_DELAY,
            waits: false,
            reported: 0,
        }
    }

    fn recent_at(&self, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.last);
        let forgotten = u32::try_from(passed.as_secs() / FORGET_AFTER.as_secs()).unwrap_or(u32::MAX);
        self.recent.saturating_sub(forgotten)
    }

    fn wait(&self, now: Instant) -> Duration {
        let Some(beyond) = self.recent.checked_sub(BURST) else {
            return Duration::ZERO;
        };
        let pause = FIRST_DELAY
            .saturating_mul(1 << beyond.min(16))
            .min(self.max_delay);
        (self.last + pause).saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass_object::ObjectKey;

    use super::*;

    const EDITED: Interference<'_> = Interference::Edit { by: Some("m") };

    fn object() -> ObjectKey {
        kinds::CONFIG_MAP.object(Some("n"), "s")
    }

    /// Returns the times of the repairs if another client changes the object `pause` after each of them.
    fn repair_times(repairs: &Repairs, pause: Duration, lasts: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let mut now = start;
        let mut times = Vec::new();
        while now - start < lasts {
            while !repairs.may_repair(&object(), "a", EDITED, now) {
                let contested = repairs.contested("a", now);
                now += contested[0].wait.unwrap().max(Duration::from_millis(1));
            }
            repairs.record_repair(&object(), now);
            times.push(now - start);
            now += pause;
        }
        times
    }

    #[test]
    fn occasional_writes_are_reverted_immediately() {
        let repairs = Repairs::default();
        let pause = FORGET_AFTER;
        let times = repair_times(&repairs, pause, Duration::from_hours(24));
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == pause));
    }

    #[test]
    fn constant_writes_are_reverted_with_backoff() {
        let repairs = Repairs::default();
        let times = repair_times(&repairs, Duration::from_millis(5), Duration::from_hours(10));
        let (burst, rest) = times.split_at(BURST as usize);
        assert!(*burst.last().unwrap() < Duration::from_secs(1));
        assert!(rest.len() <= 10 * 3600 / 60, "{}", rest.len());
        let last = rest.len() - 1;
        assert!(rest[last] - rest[last - 1] >= Duration::from_secs(60));
    }

    #[test]
    fn objects_that_calls_need_are_repaired_within_seconds() {
        let service = kinds::SERVICE.object(Some("n"), "s");
        for (object, change) in [(object(), Interference::Deletion), (service, EDITED)] {
            let repairs = Repairs::default();
            let mut now = Instant::now();
            for _ in 0..1_000 {
                let mut waited = Duration::ZERO;
                while !repairs.may_repair(&object, "a", change, now) {
                    let wait = repairs.contested("a", now)[0].wait.unwrap();
                    waited += wait;
                    now += wait;
                }
                assert!(waited <= MAX_TRAFFIC_DELAY, "{waited:?}");
                repairs.record_repair(&object, now);
                now += Duration::from_millis(5);
            }
        }
    }

    #[test]
    fn a_contest_is_reported_when_its_repairs_have_doubled() {
        let repairs = Repairs::default();
        let start = Instant::now();
        let mut news = Vec::new();
        for number in 1..=70_u32 {
            let now = start + MAX_DELAY * number;
            assert!(repairs.may_repair(&object(), "a", EDITED, now));
            repairs.record_repair(&object(), now);
            repairs.record_settled(&object());
            assert_eq!(repairs.contested("b", now), []);
            // A change every five minutes is forgotten before the next one, but counts while other repairs
            // are remembered.
            news.extend(
                repairs
                    .contested("a", now)
                    .into_iter()
                    .map(|contested| contested.repairs),
            );
        }
        assert_eq!(news, [8, 16, 32, 64]);
    }

    #[test]
    fn repairs_are_forgotten_after_a_quiet_time() {
        let repairs = Repairs::default();
        repair_times(&repairs, Duration::from_millis(5), Duration::from_secs(60));
        let later = Instant::now() + Duration::from_hours(2);
        repairs.record_settled(&object());
        assert_eq!(repairs.contested("a", later), []);
        assert!(repairs.may_repair(&object(), "a", EDITED, later));
        assert_eq!(repairs.contested("a", later), []);
    }

    #[test]
    fn due_repairs_are_immediate() {
        let repairs = Repairs::default();
        repair_times(&repairs, Duration::from_millis(5), Duration::from_secs(60));
        let now = Instant::now() + Duration::from_secs(62);
        assert!(!repairs.may_repair(&object(), "a", EDITED, now));
        let wait = repairs.contested("a", now)[0].wait.unwrap();
        assert_eq!(repairs.contested("a", now + wait), []);
    }

    #[test]
    fn failed_repairs_do_not_count() {
        let repairs = Repairs::default();
        for _ in 0..=2 * BURST {
            assert!(repairs.may_repair(&object(), "a", EDITED, Instant::now()));
        }
        assert_eq!(repairs.contested("a", Instant::now()), []);
    }

    proptest! {
        #[test]
        fn repairs_are_bounded_and_never_stop(pauses in prop::collection::vec(0_u64..90_000, 1..300)) {
            let repairs = Repairs::default();
            let start = Instant::now();
            let mut now = start;
            let mut count = 0_u64;
            for pause in pauses {
                while !repairs.may_repair(&object(), "a", EDITED, now) {
                    let wait = repairs.contested("a", now)[0].wait.unwrap();
                    prop_assert!(wait <= MAX_DELAY && !wait.is_zero());
                    now += wait;
                }
                repairs.record_repair(&object(), now);
                count += 1;
                now += Duration::from_millis(pause);
            }
            let bound = u64::from(BURST) + 10 + (now - start).as_secs() / 60;
            prop_assert!(count <= bound, "{count} in {:?}", now - start);
        }
    }
}
