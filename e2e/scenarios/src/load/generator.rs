//! Starts workers, keeps their rate, and ends them.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    counters::Counters,
    pace::{Pace, Turns},
    report::Report,
    worker::{Clients, Worker},
};
use crate::resource::Resource;

/// How many workers keep a rate at the most. When none of them is left, requests are late, and count as slow.
const MOST_WORKERS: usize = 500;

/// Running traffic.
#[derive(Debug)]
pub struct Load {
    counters: Arc<Counters>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
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
}
