//! What was sent and what came of it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::latencies::Latencies;

/// How many failures are kept with their text.
const KEPT_FAILURES: usize = 20;

/// What was sent and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Requests that were answered or failed, retries of the API server's own 429 not included.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// The first failures, in words.
    pub failures: Vec<String>,
    /// When each failure was seen.
    pub failed_at: Vec<Instant>,
    /// The API server's own `429 storage is (re)initializing`.
    pub reinitializing: u64,
    /// The longest time for which a request was kept waiting by those.
    pub longest_reinitializing: Duration,
    /// Requests that were sent again because the API server itself was down: see [`Answer::is_outage`].
    ///
    /// [`Answer::is_outage`]: crate::request::Answer::is_outage
    pub outages: u64,
    /// The longest time for which a request was kept waiting by that.
    pub longest_outage: Duration,
    /// The longest time between two successful answers, over all workers.
    pub longest_gap: Duration,
    /// How long successful requests took that the API server did not turn away.
    pub latencies: Latencies,
    /// Requests by what they did.
    pub by_kind: BTreeMap<&'static str, u64>,
}

// === impl Report ===

impl Report {
    /// Adds the counts of another report.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        let room = KEPT_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.into_iter().take(room));
        self.failed_at.extend(other.failed_at);
        self.reinitializing += other.reinitializing;
        self.longest_reinitializing = self.longest_reinitializing.max(other.longest_reinitializing);
        self.outages += other.outages;
        self.longest_outage = self.longest_outage.max(other.longest_outage);
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.latencies.add(&other.latencies);
        for (kind, count) in other.by_kind {
            *self.by_kind.entry(kind).or_default() += count;
        }
    }

    /// Counts a failure.
    pub(super) fn fail(&mut self, text: String) {
        self.failed += 1;
        self.failed_at.push(Instant::now());
        if self.failures.len() < KEPT_FAILURES {
            self.failures.push(text);
        }
    }

    /// An error that lists the failures, if there are any.
    ///
    /// # Errors
    ///
    /// When a request failed, or none was sent.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.requests > 0, "no request was sent");
        anyhow::ensure!(
            self.failed == 0,
            "{} of {} requests failed:\n  {}",
            self.failed,
            self.requests,
            self.failures.join("\n  ")
        );
        Ok(())
    }
}
