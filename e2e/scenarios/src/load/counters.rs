//! What was sent, and what came of it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use anyhow::bail;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::task::JoinError;

use super::{
    availability::Availability,
    report::{Failure, Report},
};

/// Counts of all workers.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    detail: Mutex<Detail>,
}

#[derive(Debug)]
struct Detail {
    /// Up to the last lap.
    past: Report,
    /// Since then.
    lap: Report,
    lap_began: Instant,
    last_success: Instant,
    availability: Availability,
    /// The first unexpected end of a worker.
    broken: Option<String>,
}

impl Counters {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            requests: AtomicU64::new(0),
            detail: Mutex::new(Detail {
                past: Report::default(),
                lap: Report::default(),
                lap_began: now,
                last_success: now,
                availability: Availability::default(),
                broken: None,
            }),
        }
    }

    pub(super) fn sent(&self, version: &str) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let lap = &mut self.detail.lock().lap;
        lap.requests += 1;
        *lap.by_version.entry(version.to_owned()).or_default() += 1;
    }

    pub(super) fn success(&self, kind: &'static str, latency: Option<Duration>) {
        let mut detail = self.detail.lock();
        let gap = detail.last_success.elapsed();
        detail.last_success = Instant::now();
        let lap = &mut detail.lap;
        lap.longest_gap = lap.longest_gap.max(gap);
        if let Some(latency) = latency {
            lap.latencies.record(latency);
        }
        *lap.by_kind.entry(kind).or_default() += 1;
    }

    pub(super) fn failure(&self, (sent, answered): (Instant, Instant), text: &str) {
        let text = format!("{:.3} {text}", Timestamp::now());
        self.detail.lock().lap.fail(Failure { sent, answered, text });
    }

    /// Records whether an answer shows that a version is served.
    pub(super) fn served(&self, version: &str, served: bool, (sent, answered): (Instant, Instant)) {
        let availability = &mut self.detail.lock().availability;
        availability.record(version, served, sent, answered);
    }

    pub(super) fn worker_ended(&self, ended: Result<(), JoinError>) {
        if let Err(error) = ended {
            let text = format!("a worker ended: {error}");
            let now = Instant::now();
            self.failure((now, now), &text);
            self.detail.lock().broken.get_or_insert(text);
        }
    }

    pub(super) fn check_workers(&self) -> anyhow::Result<()> {
        match &self.detail.lock().broken {
            Some(text) => bail!("{text}"),
            None => Ok(()),
        }
    }

    /// Counts a request that the API server rejected with 429, and how long it has waited.
    pub(super) fn turned_away(&self, waited: Duration) {
        let lap = &mut self.detail.lock().lap;
        lap.reinitializing += 1;
        lap.longest_reinitializing = lap.longest_reinitializing.max(waited);
    }

    /// Counts a request that found the API server down, and how long it has waited.
    pub(super) fn outage(&self, waited: Duration) {
        let lap = &mut self.detail.lock().lap;
        lap.outages += 1;
        lap.longest_outage = lap.longest_outage.max(waited);
    }

    pub(super) fn lap(&self) -> Report {
        let mut detail = self.detail.lock();
        let now = Instant::now();
        let mut lap = std::mem::take(&mut detail.lap);
        lap.took = now - std::mem::replace(&mut detail.lap_began, now);
        detail.past.add(lap.clone());
        lap
    }

    pub(super) fn report(&self) -> Report {
        let detail = self.detail.lock();
        let mut report = detail.past.clone();
        report.add(Report {
            took: detail.lap_began.elapsed(),
            ..detail.lap.clone()
        });
        report.availability = detail.availability.clone();
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_sum_of_its_laps() {
        let counters = Counters::new();
        for versions in [["v1", "v2"], ["v2", "v2"]] {
            for version in versions {
                counters.sent(version);
            }
            assert_eq!(counters.lap().requests, 2);
        }
        let report = counters.report();
        assert_eq!(report.requests, 4);
        assert_eq!(
            report.by_version,
            [("v1".to_owned(), 1), ("v2".to_owned(), 3)].into()
        );
    }
}
