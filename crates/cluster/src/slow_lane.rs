//! Who works on what, where some keys take long: a ServingCertificate whose endpoints do not answer keeps its worker for many
//! seconds, and anybody may make hundreds of those. So keys that took long share workers of their own, and so do those of which
//! nothing is known yet.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

/// How long a key took the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    /// Not long.
    Quick,
    /// Nobody knows.
    #[default]
    New,
    /// Long.
    Slow,
}

/// What is being worked on.
#[derive(Debug)]
pub(crate) struct Lanes<K> {
    concurrency: usize,
    /// From when on a key takes long; never, if `None`.
    slow_after: Option<Duration>,
    running: HashMap<K, (Lane, Instant)>,
}

/// How many times as many as in one lane are worked on that take long, before nothing is begun of which nothing is known.
const MOST_SLOW: usize = 2;

// === impl Lanes ===

impl<K: Clone + Eq + Hash> Lanes<K> {
    /// So many workers in each lane.
    pub(crate) fn new(concurrency: usize, slow_after: Option<Duration>) -> Self {
        Self {
            concurrency,
            slow_after,
            running: HashMap::new(),
        }
    }

    /// The lanes in which another key may be begun.
    pub(crate) fn free(&self) -> Vec<Lane> {
        let mut counts: BTreeMap<Lane, usize> = BTreeMap::new();
        for (lane, _) in self.running.values() {
            *counts.entry(*lane).or_default() += 1;
        }
        let count = |lane| counts.get(&lane).copied().unwrap_or_default();
        let mut free = vec![Lane::Quick, Lane::New, Lane::Slow];
        free.retain(|lane| count(*lane) < self.concurrency);
        if count(Lane::Slow) >= self.concurrency * MOST_SLOW {
            free.retain(|lane| *lane != Lane::New);
        }
        free
    }

    pub(crate) fn begin(&mut self, key: K, lane: Lane, now: Instant) {
        self.running.insert(key, (lane, now));
    }

    /// Notes that a key is done. In which lane it is from now on.
    pub(crate) fn end(&mut self, key: &K, now: Instant) -> Lane {
        let begun = self.running.remove(key);
        match (begun, self.slow_after) {
            (Some((_, since)), Some(long)) if now - since >= long => Lane::Slow,
            (Some(_), Some(_)) => Lane::Quick,
            _ => Lane::New,
        }
    }

    /// Makes room for others where a key takes long that was not expected to.
    pub(crate) fn yield_workers(&mut self, now: Instant) {
        let Some(long) = self.slow_after else { return };
        for (lane, since) in self.running.values_mut() {
            if now - *since >= long {
                *lane = Lane::Slow;
            }
        }
    }

    /// When the next key takes long.
    pub(crate) fn next_yield(&self) -> Option<Instant> {
        let long = self.slow_after?;
        let hasty = self.running.values().filter(|(lane, _)| *lane != Lane::Slow);
        hasty.map(|(_, since)| *since + long).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(2);

    #[test]
    fn a_lane_is_by_how_long_a_key_took() {
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
    fn a_key_that_takes_long_makes_room_but_not_for_ever_more() {
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
