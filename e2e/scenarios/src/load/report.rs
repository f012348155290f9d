//! The counts of sent requests and their results.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{availability::Availability, latencies::Latencies};

/// The maximum number of failures in a message.
const TOLD: usize = 20;

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When it was sent: the last try, if the API server rejected earlier ones.
    pub sent: Instant,
    /// When it was answered or given up.
    pub answered: Instant,
    /// The cause.
    pub text: String,
}

/// The counts of sent requests and their results.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Requests that were answered or failed, without retries of the API server's own 429.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Details of the failed requests.
    pub failures: Vec<Failure>,
    /// The duration of the traffic.
    pub took: Duration,
    /// The API server's own `429 storage is (re)initializing`.
    pub reinitializing: u64,
    /// The longest wait of a request because of these.
    pub longest_reinitializing: Duration,
    /// Retries because the API server was down or starting: see [`RequestAnswer::is_outage`].
    ///
    /// [`RequestAnswer::is_outage`]: crate::request::RequestAnswer::is_outage
    pub outages: u64,
    /// The longest wait of a request because of this.
    pub longest_outage: Duration,
    /// The longest time between two successful answers of all workers.
    pub longest_gap: Duration,
    /// Latencies of successful requests that the API server did not reject first.
    pub latencies: Latencies,
    /// Requests by kind.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// Requests by API version.
    pub by_version: BTreeMap<String, u64>,
    /// When [optional versions](crate::resource::Resource::optional_versions) were served. Laps have none.
    pub availability: Availability,
}

impl Failure {
    /// Whether the request was pending at some time between `from` and `to`.
    pub fn overlaps(&self, from: Instant, to: Instant) -> bool {
        self.sent <= to && from <= self.answered
    }
}

impl Report {
    /// Adds the counts of another report.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.took += other.took;
        self.reinitializing += other.reinitializing;
        self.longest_reinitializing = self.longest_reinitializing.max(other.longest_reinitializing);
        self.outages += other.outages;
        self.longest_outage = self.longest_outage.max(other.longest_outage);
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.latencies.add(&other.latencies);
        for (kind, count) in other.by_kind {
            *self.by_kind.entry(kind).or_default() += count;
        }
        for (version, count) in other.by_version {
            *self.by_version.entry(version).or_default() += count;
        }
    }

    /// Counts a failure.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failed += 1;
        self.failures.push(failure);
    }

    /// Describes the first failures.
    pub fn first_failures(&self) -> Vec<String> {
        let told = self.failures.iter().take(TOLD);
        told.map(|failure| failure.text.clone()).collect()
    }

    /// The requests per second at an API version.
    pub fn rate_at(&self, version: &str) -> f64 {
        let count = self.by_version.get(version).copied().unwrap_or_default();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        f64::from(count) / self.took.as_secs_f64()
    }

    /// Checks that `version` was served or not as in `states`: at first, and after each change.
    ///
    /// # Errors
    ///
    /// Fails if it changed in another way, for example if it was served again for a moment.
    pub fn check_served(&self, version: &str, states: &[bool]) -> anyhow::Result<()> {
        let found = self.availability.states(version);
        anyhow::ensure!(
            found == states,
            "whether {version} is served changed as {found:?}, not as {states:?}"
        );
        Ok(())
    }

    /// Returns an error that lists the failures.
    ///
    /// # Errors
    ///
    /// Fails if a request failed, or no request was sent.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.requests > 0, "no request was sent");
        anyhow::ensure!(
            self.failed == 0,
            "{} of {} requests failed:\n  {}",
            self.failed,
            self.requests,
            self.first_failures().join("\n  ")
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_overlaps_a_time_in_which_it_was_under_way() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        for (sent, answered, expected) in [
            (1, 2, false),
            (1, 3, true),
            (1, 9, true),
            (4, 4, true),
            (5, 9, true),
            (6, 9, false),
        ] {
            let failure = Failure {
                sent: at(sent),
                answered: at(answered),
                text: String::new(),
            };
            assert_eq!(failure.overlaps(at(3), at(5)), expected, "{sent} to {answered}");
        }
    }

    #[test]
    fn the_rate_at_a_version_is_that_of_the_whole_time() {
        let report = Report {
            took: Duration::from_secs(4),
            by_version: [("v1".to_owned(), 200)].into(),
            ..Report::default()
        };
        assert!((report.rate_at("v1") - 50.0).abs() < f64::EPSILON);
        assert!(report.rate_at("v2").abs() < f64::EPSILON);
    }
}
