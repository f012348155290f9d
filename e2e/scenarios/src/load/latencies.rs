//! Latencies of any number of requests.

use std::time::Duration;

/// The number of buckets per doubling of the latency: a value is read back at most 1/64 too long.
const SHARES: u64 = 64;

/// Latencies, counted in buckets whose width grows with the latency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

impl Latencies {
    /// Counts one latency.
    pub fn record(&mut self, latency: Duration) {
        let bucket = bucket(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// The time within which `percent` of requests were answered; `None` without requests.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let desired = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= desired
        })?;
        Some(Duration::from_micros(longest(bucket)))
    }
}

/// The bucket for a number of microseconds.
fn bucket(micros: u64) -> usize {
    let shift = doublings(micros);
    let place = shift * SHARES + (micros >> shift);
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// The largest number of microseconds in a bucket.
fn longest(bucket: usize) -> u64 {
    let place = u64::try_from(bucket).unwrap_or(u64::MAX);
    let shift = (place / SHARES).saturating_sub(1);
    let end = u128::from(place - shift * SHARES + 1) << shift;
    u64::try_from(end - 1).unwrap_or(u64::MAX)
}

/// How often a value must be halved to be less than twice [`SHARES`].
fn doublings(micros: u64) -> u64 {
    u64::from(micros.max(SHARES).ilog2() - SHARES.ilog2())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn latencies(micros: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        for micros in micros {
            latencies.record(Duration::from_micros(*micros));
        }
        latencies
    }

    #[test]
    fn no_latencies_have_no_percentile() {
        assert_eq!(Latencies::default().percentile(99), None);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let all: Vec<u64> = (1..=100).collect();
        for percent in [1, 50, 99, 100] {
            assert_eq!(
                latencies(&all).percentile(percent),
                Some(Duration::from_micros(percent)),
                "{percent}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_value_is_read_back_at_most_a_64th_too_long(micros: u64) {
            let read = latencies(&[micros]).percentile(100).unwrap().as_micros();
            let micros = u128::from(micros);
            prop_assert!(micros <= read && read <= micros + micros / 64, "{micros} is read as {read}");
        }

        #[test]
        fn added_latencies_are_those_of_both(one in prop::collection::vec(0..10_000_000_u64, 0..50), other in prop::collection::vec(0..10_000_000_u64, 0..50)) {
            let mut sum = latencies(&one);
            sum.add(&latencies(&other));
            prop_assert_eq!(sum, latencies(&[one, other].concat()));
        }
    }
}
