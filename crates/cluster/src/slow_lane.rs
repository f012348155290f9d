//! Lanes of a controller's workers. Some keys take long: a ServingCertificate whose endpoints do not respond
//! occupies its worker for many seconds, and tenants may create hundreds of them. So slow keys have separate
//! workers, and so have keys without a known duration.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

/// The lane of a key, by its last duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    /// Keys that were fast the last time.
    Quick,
    /// Keys without a known duration.
    #[default]
    New,
    /// Keys that were slow the last time, or are slow now.
    Slow,
}

/// The keys that are being reconciled, by lane.
#[derive(Debug)]
pub(crate) struct Lanes<K> {
    concurrency: usize,
    /// The duration from which a key is slow; `None`: never.
    slow_after: Option<Duration>,
    running: HashMap<K, (Lane, Instant)>,
}

/// The maximum number of running slow keys, as a multiple of the concurrency, before new keys have to wait.
const MAX_SLOW_FACTOR: usize = 2;

impl<K: Clone + Eq + Hash> Lanes<K> {
    /// Creates lanes with `concurrency` workers each.
    pub(crate) fn new(concurrency: usize, slow_after: Option<Duration>) -> Self {
        Self {
            concurrency,
            slow_after,
            running: HashMap::new(),
        }
    }

    /// Returns the lanes with free workers.
    pub(crate) fn free(&self) -> Vec<Lane> {
        let mut counts: BTreeMap<Lane, usize> = BTreeMap::new();
        for (lane, _) in self.running.values() {
            *counts.entry(*lane).or_default() += 1;
        }
        let count = |lane| counts.get(&lane).copied().unwrap_or_default();
        let mut free = vec![Lane::Quick, Lane::New, Lane::Slow];
        free.retain(|lane| count(*lane) < self.concurrency);
        if count(Lane::Slow) >= self.concurrency * MAX_SLOW_FACTOR {
            free.retain(|lane| *lane != Lane::New);
        }
        free
    }

    pub(crate) fn begin(&mut self, key: K, lane: Lane, now: Instant) {
        self.running.insert(key, (lane, now));
    }

    /// Records that a key is done, and returns its new lane.
    pub(crate) fn end(&mut self, key: &K, now: Instant) -> Lane {
        let started = self.running.remove(key);
        match (started, self.slow_after) {
            (Some((_, since)), Some(long)) if now - since >= long => Lane::Slow,
            (Some(_), Some(_)) => Lane::Quick,
            _ => Lane::New,
        }
    }

    /// Moves running keys that have become slow to the slow lane, which frees their workers.
    pub(crate) fn yield_workers(&mut self, now: Instant) {
        let Some(long) = self.slow_after else { return };
        for (lane, since) in self.running.values_mut() {
            if now - *since >= long {
                *lane = Lane::Slow;
            }
        }
    }

    /// Returns when the next running key becomes slow.
    pub(crate) fn next_yield(&self) -> Option<Instant> {
        let long = self.slow_after?;
        let not_slow = self.running.values().filter(|(lane, _)| *lane != Lane::Slow);
        not_slow.map(|(_, since)| *since + long).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(2);

    #[test]
    fn the_duration_of_a_key_selects_its_lane() {
        let mut lanes = Lanes::new(1, Some(LONG));
        let now = Instant::now();
        for (took, lane) in [(Duration::ZERO, Lane::Quick), (LONG, Lane::Slow)] {
            lanes.begin("a", Lane::New, now);
            assert_eq!(lanes.end(&"a", now + took), lane);
        }
        let mut same = Lanes::new(1, None);
        same.begin("a", Lane::New, now);
        assert_eq!((same.next_yield(), same.end(&"a", now + LONG)), (None, Lane::New));
    }

    #[test]
    fn slow_keys_free_their_worker_up_to_a_limit() {
        let mut lanes = Lanes::new(1, Some(LONG));
        let now = Instant::now();
        for number in 0..2 {
            let since = now + LONG * number;
            assert!(lanes.free().contains(&Lane::New), "{number}");
            lanes.begin(number, Lane::New, since);
            assert!(!lanes.free().contains(&Lane::New), "{number}");
            assert_eq!(lanes.next_yield(), Some(since + LONG));
            lanes.yield_workers(since + LONG);
        }
        assert_eq!(lanes.free(), [Lane::Quick]);
    }
}
