//! API traffic through webhooks, counted.
//!
//! Every request goes to the API server as a client's would. A request fails when it is answered with anything
//! but what a client may expect; the API server's own 429 after a change of a CRD is retried as client-go does,
//! and counted apart.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    request::{self, Answer},
    resource::{Expectation, Resource},
};

/// How many failures are kept with their text.
const KEPT_FAILURES: usize = 20;

/// How long a client waits before it asks an API server again that is down.
const OUTAGE_PAUSE: Duration = Duration::from_millis(200);

/// What was sent and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Requests that were answered or failed, retries of the API server's own 429 not included.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// The first failures, in words.
    pub failures: Vec<String>,
    /// The API server's own `429 storage is (re)initializing`.
    pub reinitializing: u64,
    /// The longest time for which a request was kept waiting by those.
    pub longest_reinitializing: Duration,
    /// Requests that were sent again because the API server itself was down: see [`Answer::is_outage`].
    pub outages: u64,
    /// The longest time for which a request was kept waiting by that.
    pub longest_outage: Duration,
    /// The longest time between two successful answers, over all workers.
    pub longest_gap: Duration,
    /// The time below which 99 of 100 requests were answered.
    pub p99: Duration,
    /// Requests by what they did.
    pub by_kind: BTreeMap<&'static str, u64>,
}

/// Running traffic.
#[derive(Debug)]
pub struct Load {
    counters: Arc<Counters>,
    stop: CancellationToken,
    workers: JoinSet<()>,
}

#[derive(Debug)]
struct Counters {
    requests: AtomicU64,
    failed: AtomicU64,
    detail: Mutex<Detail>,
}

#[derive(Debug)]
struct Detail {
    failures: Vec<String>,
    reinitializing: u64,
    longest_reinitializing: Duration,
    outages: u64,
    longest_outage: Duration,
    last_success: Instant,
    longest_gap: Duration,
    latencies: Vec<Duration>,
    by_kind: BTreeMap<&'static str, u64>,
}

struct Worker {
    client: Client,
    counters: Arc<Counters>,
    namespace: String,
    number: usize,
    pause: Duration,
    stop: CancellationToken,
    outlasts: bool,
}

/// Whom the API server itself may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Nobody: no answer, or one that it is down, is a failure.
    Strict,
    /// Clients that send a request again while the API server itself is down, as controllers do. That is counted apart.
    OutlastOutages,
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
        let counters = Arc::new(Counters::new());
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for number in 0..workers {
            let worker = Worker {
                client: client.clone(),
                counters: counters.clone(),
                namespace: namespace.to_owned(),
                number,
                pause,
                stop: stop.clone(),
                outlasts: clients == Clients::OutlastOutages,
            };
            tasks.spawn(worker.run(resources.to_vec()));
        }
        Self {
            counters,
            stop,
            workers: tasks,
        }
    }

    /// What was sent up to now.
    pub fn report(&self) -> Report {
        self.counters.report()
    }

    /// Waits until `requests` more requests were sent.
    pub async fn at_least(&self, requests: u64) {
        let target = self.counters.requests.load(Ordering::Relaxed) + requests;
        while self.counters.requests.load(Ordering::Relaxed) < target {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the traffic after the requests that are under way, and removes what it created.
    pub async fn stop(mut self) -> Report {
        self.stop.cancel();
        while let Some(worker) = self.workers.join_next().await {
            if let Err(error) = worker {
                self.counters.failure(format!("a worker ended: {error}"));
            }
        }
        self.counters.report()
    }
}

// === impl Report ===

impl Report {
    /// Adds the counts of another report.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.reinitializing += other.reinitializing;
        self.longest_reinitializing = self.longest_reinitializing.max(other.longest_reinitializing);
        self.outages += other.outages;
        self.longest_outage = self.longest_outage.max(other.longest_outage);
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.p99 = self.p99.max(other.p99);
        for (kind, count) in other.by_kind {
            *self.by_kind.entry(kind).or_default() += count;
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

// === impl Counters ===

impl Counters {
    fn new() -> Self {
        Self {
            requests: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            detail: Mutex::new(Detail {
                failures: Vec::new(),
                reinitializing: 0,
                longest_reinitializing: Duration::ZERO,
                outages: 0,
                longest_outage: Duration::ZERO,
                last_success: Instant::now(),
                longest_gap: Duration::ZERO,
                latencies: Vec::new(),
                by_kind: BTreeMap::new(),
            }),
        }
    }

    fn success(&self, kind: &'static str, latency: Duration) {
        let mut detail = self.detail.lock();
        let gap = detail.last_success.elapsed();
        detail.longest_gap = detail.longest_gap.max(gap);
        detail.last_success = Instant::now();
        detail.latencies.push(latency);
        *detail.by_kind.entry(kind).or_default() += 1;
    }

    fn outage(&self, waited: Duration) {
        let mut detail = self.detail.lock();
        detail.outages += 1;
        detail.longest_outage = detail.longest_outage.max(waited);
    }

    fn failure(&self, text: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut detail = self.detail.lock();
        if detail.failures.len() < KEPT_FAILURES {
            detail.failures.push(text);
        }
    }

    fn report(&self) -> Report {
        let detail = self.detail.lock();
        let mut latencies = detail.latencies.clone();
        latencies.sort_unstable();
        Report {
            requests: self.requests.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            failures: detail.failures.clone(),
            reinitializing: detail.reinitializing,
            longest_reinitializing: detail.longest_reinitializing,
            outages: detail.outages,
            longest_outage: detail.longest_outage,
            longest_gap: detail.longest_gap,
            p99: latencies
                .get(latencies.len() * 99 / 100)
                .copied()
                .unwrap_or_default(),
            by_kind: detail.by_kind.clone(),
        }
    }
}

// === impl Worker ===

impl Worker {
    async fn run(self, resources: Vec<Resource>) {
        for round in 0_u64.. {
            for resource in &resources {
                if self.stop.is_cancelled() {
                    return;
                }
                self.round(resource, round).await;
            }
        }
    }

    /// The life of one object: created, read in every version, patched in one, listed, deleted.
    async fn round(&self, resource: &Resource, round: u64) {
        let name = format!("load-{}-{round}", self.number);
        let created_as = request::text(&resource.example, "/apiVersion").to_owned();
        let Some((_, created_version)) = created_as.split_once('/') else {
            return self
                .counters
                .failure(format!("the example of {} has no apiVersion", resource.plural));
        };
        let mut object = resource.example.clone();
        object["metadata"]["name"] = json!(name);
        let path = |version: &str| resource.path(&self.namespace, version);

        let created = self
            .send("create", "POST", &path(created_version), Some(&object))
            .await;
        self.expect("create", resource, created_version, &created);
        if resource.expectation == Expectation::Admitted {
            self.denied(resource, created_version, &object).await;
        }
        for version in &resource.versions {
            let read = self
                .send("get", "GET", &format!("{}/{name}", path(version)), None)
                .await;
            self.expect("get", resource, version, &read);
        }
        // Only the sample's conversion is known to make objects that are valid in every version.
        let version = match resource.expectation {
            Expectation::Converted | Expectation::Admitted => {
                resource.versions[usize::try_from(round).unwrap_or(0) % resource.versions.len()].as_str()
            }
            Expectation::Version => created_version,
        };
        let patch = json!({"metadata": {"labels": {"round": round.to_string()}}});
        let patched = self
            .send(
                "patch",
                "PATCH",
                &format!("{}/{name}", path(version)),
                Some(&patch),
            )
            .await;
        self.expect("patch", resource, version, &patched);
        let listed = self
            .send("list", "GET", &format!("{}?limit=50", path(version)), None)
            .await;
        if let Some(answer) = listed
            && answer.code != 200
        {
            self.counters
                .failure(format!("list {} at {version}: {answer}", resource.plural));
        }
        let deleted = self
            .send("delete", "DELETE", &format!("{}/{name}", path(version)), None)
            .await;
        if let Some(answer) = deleted
            && answer.code != 200
        {
            self.counters
                .failure(format!("delete {} at {version}: {answer}", resource.plural));
        }
    }

    /// The validating webhook must be asked: an object that it forbids must be denied in its words.
    async fn denied(&self, resource: &Resource, version: &str, object: &Value) {
        let mut forbidden = object.clone();
        forbidden["metadata"]["name"] = json!(format!("forbidden-{}", self.number));
        forbidden["spec"]["size"] = json!(-1);
        let answer = self
            .send(
                "deny",
                "POST",
                &resource.path(&self.namespace, version),
                Some(&forbidden),
            )
            .await;
        if let Some(answer) = answer
            && !(answer.is_denied() && answer.message().contains("size must not be negative"))
        {
            self.counters
                .failure(format!("create of a forbidden {}: {answer}", resource.plural));
        }
    }

    fn expect(&self, verb: &str, resource: &Resource, version: &str, answer: &Option<Answer>) {
        let Some(answer) = answer else { return };
        let problem = if !(answer.code == 200 || answer.code == 201) {
            Some(answer.to_string())
        } else if request::text(&answer.body, "/apiVersion") != format!("{}/{version}", resource.group) {
            Some(format!(
                "answered as {}",
                request::text(&answer.body, "/apiVersion")
            ))
        } else {
            resource.problem(&answer.body)
        };
        if let Some(problem) = problem {
            self.counters
                .failure(format!("{verb} {} at {version}: {problem}", resource.plural));
        }
    }

    /// What a request that was sent again has found: its first try was carried out, and only its answer lost.
    async fn carried_out_before(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        answer: &Answer,
    ) -> Option<Answer> {
        match (method, answer.code) {
            ("POST", 409) => {
                let name = request::text(body?, "/metadata/name");
                request::send(&self.client, "GET", &format!("{path}/{name}"), None)
                    .await
                    .ok()
            }
            ("DELETE", 404) => Some(Answer {
                code: 200,
                ..answer.clone()
            }),
            _ => None,
        }
    }

    /// Sends one request; `None` when it failed below HTTP, which is counted.
    async fn send(
        &self,
        kind: &'static str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Answer> {
        tokio::time::sleep(self.pause).await;
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let started = Instant::now();
        let mut repeated = false;
        loop {
            let sent = request::send(&self.client, method, path, body).await;
            let outage = sent.as_ref().map_or(true, Answer::is_outage);
            if self.outlasts && outage && started.elapsed() < request::RETRY_LIMIT {
                repeated = true;
                self.counters.outage(started.elapsed());
                tokio::time::sleep(OUTAGE_PAUSE).await;
                continue;
            }
            let answer = match sent {
                Ok(answer) if repeated => match self.carried_out_before(method, path, body, &answer).await {
                    Some(earlier) => earlier,
                    None => answer,
                },
                Ok(answer) => answer,
                Err(error) => {
                    self.counters.failure(format!("{method} {path}: {error:#}"));
                    return None;
                }
            };
            if !answer.is_reinitializing() || started.elapsed() > request::RETRY_LIMIT {
                if answer.code < 400 || kind == "deny" {
                    self.counters.success(kind, started.elapsed());
                }
                return Some(answer);
            }
            {
                let mut detail = self.counters.detail.lock();
                detail.reinitializing += 1;
                detail.longest_reinitializing = detail.longest_reinitializing.max(started.elapsed());
            }
            tokio::time::sleep(answer.pause()).await;
        }
    }
}
