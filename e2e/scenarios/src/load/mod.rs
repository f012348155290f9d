//! API traffic through webhooks, counted.
//!
//! Every request goes to the API server as a client's would. A request fails when it is answered with anything
//! but what a client may expect; the API server's own 429 after a change of a CRD is retried as client-go does,
//! and counted apart.

mod latencies;
mod pace;
mod report;
mod worker;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::bail;
use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::resource::Resource;

pub use self::{
    latencies::Latencies,
    report::{Failure, Report},
};
use self::{
    pace::{Pace, Turns},
    worker::Worker,
};

/// How many workers keep a rate at the most. When none of them is left, requests are late, and count as slow.
const MOST_WORKERS: usize = 500;

/// Whom the API server itself may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Nobody: no answer, or one that it is down, is a failure.
    Strict,
    /// Clients that send a request again while the API server itself is down, as controllers do. That is counted apart.
    OutlastOutages,
}

/// Running traffic.
#[derive(Debug)]
pub struct Load {
    counters: Arc<Counters>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Counters {
    requests: AtomicU64,
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
    /// How the first worker ended that should not have.
    broken: Option<String>,
}

// === impl Load ===

impl Load {
    /// Starts `workers` workers, each sending a request every `pause` at most, in `namespace`.
    ///
    /// `client` must not retry by itself.
    pub fn start(
        client: &Client,
        namespace: &str,
        resources: &[Resource],
        workers: usize,
        pause: Duration,
        clients: Clients,
    ) -> Self {
        let mut load = Self::new();
        let first = load.first_worker(client, namespace, resources, Pace::Pause(pause));
        let mut tasks = JoinSet::new();
        for number in 0..workers {
            let worker = Worker {
                number,
                clients,
                ..first.clone()
            };
            tasks.spawn(worker.run());
        }
        load.tasks.spawn(watch(tasks, load.counters.clone()));
        load
    }

    /// Starts to send that many requests a second, in `namespace`, whether or not those before were answered. A request's
    /// latency counts from when it was due, so that a server's pause is seen by all requests that fell into it.
    ///
    /// `client` must not retry by itself.
    pub fn start_at_rate(client: &Client, namespace: &str, resources: &[Resource], per_second: u32) -> Self {
        let mut load = Self::new();
        let turns = Arc::new(Turns::new());
        let first = load.first_worker(client, namespace, resources, Pace::Turns(turns.clone()));
        let interval = Duration::from_secs(1) / per_second.max(1);
        load.tasks.spawn(keep_rate(interval, turns, first));
        load
    }

    fn new() -> Self {
        Self {
            counters: Arc::new(Counters::new()),
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
        }
    }

    fn first_worker(&self, client: &Client, namespace: &str, resources: &[Resource], pace: Pace) -> Worker {
        Worker {
            client: client.clone(),
            counters: self.counters.clone(),
            namespace: namespace.to_owned(),
            resources: resources.into(),
            number: 0,
            pace,
            clients: Clients::Strict,
            stop: self.stop.clone(),
        }
    }

    /// What was sent up to now.
    pub fn report(&self) -> Report {
        self.counters.report()
    }

    /// What was sent since the last lap, or the start.
    pub fn lap(&self) -> Report {
        self.counters.lap()
    }

    /// Waits until `requests` more requests were sent.
    ///
    /// # Errors
    ///
    /// When a worker has ended that should not have: there may be nobody left to send them.
    pub async fn at_least(&self, requests: u64) -> anyhow::Result<()> {
        let target = self.counters.requests.load(Ordering::Relaxed) + requests;
        while self.counters.requests.load(Ordering::Relaxed) < target {
            self.counters.check_workers()?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Ends the traffic after the requests that are under way, and removes what it created.
    pub async fn end(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            self.counters.worker_ended(ended);
        }
    }

    /// [Ends](Self::end) the traffic. What was sent.
    pub async fn stop(mut self) -> Report {
        self.end().await;
        self.report()
    }
}

/// Waits for workers, and notes how each has ended.
async fn watch(mut workers: JoinSet<()>, counters: Arc<Counters>) {
    while let Some(ended) = workers.join_next().await {
        counters.worker_ended(ended);
    }
}

/// Gives out a turn every `interval`, and takes on one more worker whenever none is there for it.
async fn keep_rate(interval: Duration, turns: Arc<Turns>, first: Worker) {
    let mut workers = JoinSet::new();
    let mut due = Instant::now();
    for number in 0.. {
        let pause = tokio::time::sleep_until(due.into());
        if first.stop.run_until_cancelled(pause).await.is_none() {
            break;
        }
        while let Some(ended) = workers.try_join_next() {
            first.counters.worker_ended(ended);
        }
        if !turns.has_worker_for_one_more() && workers.len() < MOST_WORKERS {
            let worker = Worker {
                number,
                ..first.clone()
            };
            workers.spawn(worker.run());
        }
        turns.give(due);
        due += interval;
    }
    turns.end();
    watch(workers, first.counters).await;
}

// === impl Counters ===

impl Counters {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            requests: AtomicU64::new(0),
            detail: Mutex::new(Detail {
                past: Report::default(),
                lap: Report::default(),
                lap_began: now,
                last_success: now,
                broken: None,
            }),
        }
    }

    fn sent(&self, version: &str) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let lap = &mut self.detail.lock().lap;
        lap.requests += 1;
        *lap.by_version.entry(version.to_owned()).or_default() += 1;
    }

    fn success(&self, kind: &'static str, latency: Option<Duration>) {
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

    fn failure(&self, (sent, answered): (Instant, Instant), text: &str) {
        let text = format!("{:.3} {text}", Timestamp::now());
        self.detail.lock().lap.fail(Failure { sent, answered, text });
    }

    fn worker_ended(&self, ended: Result<(), JoinError>) {
        if let Err(error) = ended {
            let text = format!("a worker ended: {error}");
            let now = Instant::now();
            self.failure((now, now), &text);
            self.detail.lock().broken.get_or_insert(text);
        }
    }

    fn check_workers(&self) -> anyhow::Result<()> {
        match &self.detail.lock().broken {
            Some(text) => bail!("{text}"),
            None => Ok(()),
        }
    }

    /// A request was turned away by the API server itself, and has been waiting for so long.
    fn turned_away(&self, waited: Duration) {
        let lap = &mut self.detail.lock().lap;
        lap.reinitializing += 1;
        lap.longest_reinitializing = lap.longest_reinitializing.max(waited);
    }

    /// The API server was down for a request, which has been waiting for so long.
    fn outage(&self, waited: Duration) {
        let lap = &mut self.detail.lock().lap;
        lap.outages += 1;
        lap.longest_outage = lap.longest_outage.max(waited);
    }

    fn lap(&self) -> Report {
        let mut detail = self.detail.lock();
        let now = Instant::now();
        let mut lap = std::mem::take(&mut detail.lap);
        lap.took = now - std::mem::replace(&mut detail.lap_began, now);
        detail.past.add(lap.clone());
        lap
    }

    fn report(&self) -> Report {
        let detail = self.detail.lock();
        let mut report = detail.past.clone();
        report.add(Report {
            took: detail.lap_began.elapsed(),
            ..detail.lap.clone()
        });
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_waits_for_requests_of_workers_that_have_ended() {
        let mut load = Load::new();
        let mut workers = JoinSet::new();
        workers.spawn(std::future::pending());
        workers.abort_all();
        load.tasks.spawn(watch(workers, load.counters.clone()));
        let error = load.at_least(1).await.unwrap_err().to_string();
        assert!(error.starts_with("a worker ended: "), "{error}");
        assert_eq!(load.stop().await.failed, 1);
    }

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
