//! Starts workers, keeps their rate, and stops them.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    counters::Counters,
    informer::Informer,
    pace::{Pace, Turns},
    report::Report,
    worker::{Clients, Worker},
};
use crate::resource::Resource;

/// The maximum number of workers that keep a rate. When all are busy, requests are late and count as slow.
const MOST_WORKERS: usize = 500;

/// Running traffic.
#[derive(Debug)]
pub struct Load {
    counters: Arc<Counters>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Load {
    /// Starts `workers` workers in `namespace`, each of which sends a request at most every `pause`.
    ///
    /// `client` must not retry.
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

    /// Starts to send `per_second` requests per second in `namespace`, whether or not earlier ones are
    /// answered. The latency of a request counts from its due time, so a pause of the server delays all
    /// requests that are due during the pause.
    ///
    /// `client` must not retry.
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

    /// Also lists and watches a resource in each of its versions. Each object with wrong content is a failure.
    pub fn watch(&mut self, client: &Client, namespace: &str, resource: &Resource) {
        for version in resource.versions.iter().chain(&resource.optional_versions) {
            let informer = Informer {
                client: client.clone(),
                counters: self.counters.clone(),
                namespace: namespace.to_owned(),
                resource: resource.clone(),
                version: version.clone(),
                stop: self.stop.clone(),
            };
            self.tasks.spawn(informer.run());
        }
    }

    /// The counts so far.
    pub fn report(&self) -> Report {
        self.counters.report()
    }

    /// The counts since the last lap or the start.
    pub fn lap(&self) -> Report {
        self.counters.lap()
    }

    /// Waits until `requests` further requests are sent.
    ///
    /// # Errors
    ///
    /// Fails if a worker has ended unexpectedly, since the rate could not be kept.
    pub async fn at_least(&self, requests: u64) -> anyhow::Result<()> {
        let target = self.counters.requests.load(Ordering::Relaxed) + requests;
        while self.counters.requests.load(Ordering::Relaxed) < target {
            self.counters.check_workers()?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Stops the traffic after the pending requests, and deletes the created objects.
    pub async fn end(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            self.counters.worker_ended(ended);
        }
    }

    /// [Ends](Self::end) the traffic and returns the counts.
    pub async fn stop(mut self) -> Report {
        self.end().await;
        self.report()
    }
}

/// Waits for workers and records how they end.
async fn watch(mut workers: JoinSet<()>, counters: Arc<Counters>) {
    while let Some(ended) = workers.join_next().await {
        counters.worker_ended(ended);
    }
}

/// Schedules a request every `interval`, and starts another worker when all are busy.
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
    async fn waiting_for_requests_fails_when_a_worker_has_ended() {
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
