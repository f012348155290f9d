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

use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::resource::Resource;

pub use self::{latencies::Latencies, report::Report};
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
    last_success: Instant,
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
        for number in 0..workers {
            let worker = Worker {
                number,
                clients,
                ..first.clone()
            };
            load.tasks.spawn(worker.run());
        }
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
    pub async fn at_least(&self, requests: u64) {
        let target = self.counters.requests.load(Ordering::Relaxed) + requests;
        while self.counters.requests.load(Ordering::Relaxed) < target {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
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
    while let Some(ended) = workers.join_next().await {
        first.counters.worker_ended(ended);
    }
}

// === impl Counters ===

impl Counters {
    fn new() -> Self {
        Self {
            requests: AtomicU64::new(0),
            detail: Mutex::new(Detail {
                past: Report::default(),
                lap: Report::default(),
                last_success: Instant::now(),
            }),
        }
    }

    fn sent(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.detail.lock().lap.requests += 1;
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

    fn failure(&self, text: String) {
        let text = format!("{:.3} {text}", Timestamp::now());
        self.detail.lock().lap.fail(text);
    }

    fn worker_ended(&self, ended: Result<(), JoinError>) {
        if let Err(error) = ended {
            self.failure(format!("a worker ended: {error}"));
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
        let lap = std::mem::take(&mut detail.lap);
        detail.past.add(lap.clone());
        lap
    }

    fn report(&self) -> Report {
        let detail = self.detail.lock();
        let mut report = detail.past.clone();
        report.add(detail.lap.clone());
        report
    }
}
