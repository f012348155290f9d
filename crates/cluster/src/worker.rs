//! The loop of a controller: watches and timers queue keys, each key is reconciled by one task at a time, and
//! failures are retried with backoff.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Display,
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rand::Rng;
use tokio::{
    sync::Notify,
    task::{JoinError, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info_span, warn};

use crate::{
    lease::NotLeading,
    slow_lane::{Lane, Lanes},
    telemetry::{Metrics, chain},
};

/// The queue of keys, each reconciled once at a time.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    /// When each waiting key is due; and the same in order, per lane: each [`Due`] is unique.
    due: HashMap<K, Due>,
    order: BTreeMap<Lane, BTreeMap<Due, K>>,
    /// The known lanes of keys, which do not change while a key is waiting.
    lanes: HashMap<K, Lane>,
    /// The running keys, and when they are due again.
    busy: HashMap<K, Option<Instant>>,
    added: u64,
}

/// When a key is due, and a counter that orders keys with the same time.
type Due = (Instant, u64);

/// When to reconcile a key again without a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Only after a change.
    AwaitChange,
    /// After this delay.
    Requeue(Duration),
}

/// Identifies an object to reconcile.
pub trait QueueKey: Clone + Display + Eq + Hash + Send + 'static {}

impl<K: Clone + Display + Eq + Hash + Send + 'static> QueueKey for K {}

/// Settings of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The name in logs and metrics.
    pub controller: &'static str,
    /// The number of keys that are reconciled at a time, and of slow keys in addition.
    pub concurrency: usize,
    /// The duration from which a key is slow; `None`: never.
    pub slow_after: Option<Duration>,
    /// The delay after the first failure of a key; doubles with each failure.
    pub first_retry: Duration,
    /// The longest delay after failures.
    pub last_retry: Duration,
}

impl Settings {
    /// Creates settings with the default backoff.
    pub const fn new(controller: &'static str, concurrency: usize) -> Self {
        Self {
            controller,
            concurrency,
            slow_after: None,
            first_retry: Duration::from_millis(200),
            last_retry: Duration::from_secs(60),
        }
    }

    /// Adds separate workers for keys that take `long`.
    #[must_use]
    pub const fn with_slow_after(self, long: Duration) -> Self {
        Self {
            slow_after: Some(long),
            ..self
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        let state = State {
            due: HashMap::new(),
            order: BTreeMap::new(),
            lanes: HashMap::new(),
            busy: HashMap::new(),
            added: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Queues a key now; a running key is reconciled again.
    pub fn add(&self, key: K) {
        self.add_at(key, Instant::now());
    }

    /// Queues a key after `delay`, unless it is due earlier.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_at(key, Instant::now() + delay);
    }

    fn add_at(&self, key: K, at: Instant) {
        self.state.lock().add(key, at);
        self.changed.notify_one();
    }

    /// Waits for a due key of these lanes that is not running. Return it with [`Queue::done`].
    async fn take(&self, lanes: &[Lane]) -> (K, Lane) {
        loop {
            let changed = self.changed.notified();
            let next = match self.state.lock().take(lanes, Instant::now()) {
                Ok(taken) => return taken,
                Err(next) => next,
            };
            match next {
                Some(due) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(due) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Records that a key is done, and its new lane.
    fn done(&self, key: K, lane: Lane) {
        self.state.lock().done(key, lane);
        self.changed.notify_one();
    }
}

impl<K: Clone + Eq + Hash> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn add(&mut self, key: K, at: Instant) {
        if let Some(again) = self.busy.get_mut(&key) {
            *again = Some(again.map_or(at, |again| again.min(at)));
            return;
        }
        if let Some(due) = self.due.get(&key) {
            if due.0 <= at {
                return;
            }
            let due = *due;
            self.lane_of(&key).remove(&due);
        }
        self.added += 1;
        let due = (at, self.added);
        self.lane_of(&key).insert(due, key.clone());
        self.due.insert(key, due);
    }

    fn lane_of(&mut self, key: &K) -> &mut BTreeMap<Due, K> {
        let lane = self.lanes.get(key).copied().unwrap_or_default();
        self.order.entry(lane).or_default()
    }

    /// Returns the first due key of these lanes; or else when the next one is due.
    fn take(&mut self, lanes: &[Lane], now: Instant) -> Result<(K, Lane), Option<Instant>> {
        let due = |lane: &Lane| Some((*self.order.get(lane)?.first_key_value()?.0, *lane));
        let Some((first, lane)) = lanes.iter().filter_map(due).min() else {
            return Err(None);
        };
        let of_lane = self.order.get_mut(&lane).filter(|_| first.0 <= now);
        let Some(key) = of_lane.and_then(|order| order.remove(&first)) else {
            return Err(Some(first.0));
        };
        self.due.remove(&key);
        self.busy.insert(key.clone(), None);
        Ok((key, lane))
    }

    fn done(&mut self, key: K, lane: Lane) {
        match lane {
            Lane::New => self.lanes.remove(&key),
            lane => self.lanes.insert(key.clone(), lane),
        };
        if let Some(Some(again)) = self.busy.remove(&key) {
            self.add(key, again);
        }
    }
}

/// Reconciles queued keys until `shutdown`, and then finishes the running ones.
///
/// # Errors
///
/// When a reconciliation panicked: the process has to restart.
pub async fn run<K, E, R, F>(
    settings: Settings,
    queue: Arc<Queue<K>>,
    metrics: Arc<Metrics>,
    reconcile: R,
    shutdown: CancellationToken,
) -> Result<(), JoinError>
where
    K: QueueKey,
    E: std::error::Error + Send + 'static,
    R: Fn(K) -> F,
    F: Future<Output = Result<Action, E>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let mut failures: HashMap<K, u32> = HashMap::new();
    let mut lanes = Lanes::new(settings.concurrency, settings.slow_after);
    loop {
        lanes.yield_workers(Instant::now());
        let (free, next_yield) = (lanes.free(), lanes.next_yield());
        let may_take = !free.is_empty() && !shutdown.is_cancelled();
        tokio::select! {
            () = shutdown.cancelled(), if !shutdown.is_cancelled() => {}
            () = tokio::time::sleep_until(next_yield.unwrap_or_else(Instant::now)), if next_yield.is_some() => {}
            (key, lane) = queue.take(&free), if may_take => {
                lanes.begin(key.clone(), lane, Instant::now());
                let span = info_span!("reconcile", controller = settings.controller, object = %key);
                let work = reconcile(key.clone());
                let started = Instant::now();
                tasks.spawn(async move { (key, work.await, started.elapsed()) }.instrument(span));
            }
            Some(ended) = tasks.join_next() => {
                let (key, result, took) = ended?;
                let requeue = record_outcome(settings, &metrics, &mut failures, &key, &result, took);
                let lane = lanes.end(&key, Instant::now());
                if let Some(delay) = requeue {
                    queue.add_after(key.clone(), delay);
                }
                // Keys that wait only for a change are forgotten, since their object may be deleted.
                queue.done(key, requeue.map_or(Lane::New, |_| lane));
            }
            else => return Ok(()),
        }
    }
}

/// Counts and logs the outcome of a reconciliation. Returns the delay until the next one.
fn record_outcome<K: QueueKey, E: std::error::Error + 'static>(
    settings: Settings,
    metrics: &Metrics,
    failures: &mut HashMap<K, u32>,
    key: &K,
    result: &Result<Action, E>,
    took: Duration,
) -> Option<Duration> {
    let controller = settings.controller;
    match result {
        Ok(action) => {
            metrics.record_reconciliation(controller, true, took);
            failures.remove(key);
            debug!(controller, object = %key, ?took, ?action, "Reconciled");
            match action {
                Action::AwaitChange => None,
                Action::Requeue(delay) => Some(*delay),
            }
        }
        Err(error) if NotLeading::is_cause_of(error) => {
            debug!(controller, object = %key, "Not the leader; skipped");
            Some(backoff(settings, 0))
        }
        Err(error) => {
            metrics.record_reconciliation(controller, false, took);
            let count = failures.entry(key.clone()).or_default();
            let delay = backoff(settings, *count);
            *count = count.saturating_add(1);
            warn!(controller, object = %key, error = %chain(error), retry = ?delay, "Cannot reconcile");
            Some(delay)
        }
    }
}

/// Returns a delay that doubles with each failure, up to a limit, with a jitter of a quarter so that keys are
/// spread.
fn backoff(settings: Settings, failures: u32) -> Duration {
    let doubled = settings.first_retry.saturating_mul(1 << failures.min(20));
    doubled
        .min(settings.last_retry)
        .mul_f64(rand::rng().random_range(0.75..=1.0))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::requests::RequestError;

    const SETTINGS: Settings = Settings {
        controller: "test",
        concurrency: 4,
        slow_after: None,
        first_retry: Duration::from_millis(10),
        last_retry: Duration::from_secs(10),
    };

    #[test]
    fn backoff_grows_to_its_limit() {
        for failures in 0..200 {
            let pause = backoff(SETTINGS, failures);
            assert!(pause <= Duration::from_secs(10), "{pause:?}");
            assert!(pause >= Duration::from_micros(7500), "{pause:?}");
        }
        assert!(backoff(SETTINGS, 30) >= Duration::from_millis(7500));
    }

    #[tokio::test]
    async fn a_key_runs_once_at_a_time_and_no_change_is_lost() {
        let queue = Arc::new(Queue::new());
        queue.add("a".to_owned());
        queue.add("a".to_owned());
        let (key, lane) = queue.take(&[Lane::New]).await;
        queue.add("a".to_owned());
        let early = tokio::time::timeout(Duration::from_millis(50), queue.take(&[lane])).await;
        assert!(early.is_err(), "the key is running");
        queue.done(key, lane);
        assert_eq!(queue.take(&[lane]).await.0, "a");
    }

    #[test]
    fn keys_are_taken_when_due() {
        let queue = Queue::new();
        let mut state = queue.state.lock();
        let new = &[Lane::New];
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        for (key, second) in [("late", 30), ("soon", 10), ("late", 20), ("soon", 40)] {
            state.add(key, at(second));
        }
        assert_eq!(state.take(new, start), Err(Some(at(10))));
        assert_eq!(state.take(new, at(10)), Ok(("soon", Lane::New)));
        // A running key is queued for when it is done, at the earliest requested time.
        state.add("soon", at(25));
        state.add("soon", at(15));
        assert_eq!(state.take(new, at(19)), Err(Some(at(20))));
        state.done("soon", Lane::New);
        assert_eq!(state.take(new, at(20)), Ok(("soon", Lane::New)));
        assert_eq!(state.take(new, at(20)), Ok(("late", Lane::New)));
        state.done("soon", Lane::New);
        state.done("late", Lane::New);
        assert_eq!(state.take(new, at(60)), Err(None));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_keys_do_not_block_other_keys() {
        let settings = SETTINGS.with_slow_after(Duration::from_secs(2));
        let (queue, reconciliations) = (Arc::new(Queue::new()), Arc::new(AtomicUsize::new(0)));
        queue.add("quick".to_owned());
        for number in 0..50 {
            queue.add(format!("slow-{number}"));
        }
        let counted = reconciliations.clone();
        let reconcile = move |key: String| {
            let reconciliations = counted.clone();
            async move {
                if key == "quick" {
                    reconciliations.fetch_add(1, Ordering::SeqCst);
                } else {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                }
                Ok::<_, std::io::Error>(Action::Requeue(Duration::from_secs(1)))
            }
        };
        let metrics = Arc::new(Metrics::new());
        let working = run(settings, queue, metrics, reconcile, CancellationToken::new());
        assert!(
            tokio::time::timeout(Duration::from_secs(100), working)
                .await
                .is_err()
        );
        let reconciliations = reconciliations.load(Ordering::SeqCst);
        assert!(reconciliations >= 99, "{reconciliations}");
    }

    /// Reconciles one key until `outcome` returns success. Returns the number of attempts.
    async fn tries<E: std::error::Error + Send + 'static>(
        metrics: &Arc<Metrics>,
        outcome: impl Fn(usize) -> Option<E>,
    ) -> usize {
        let queue = Arc::new(Queue::new());
        let tries = AtomicUsize::new(0);
        let shutdown = CancellationToken::new();
        queue.add("a".to_owned());
        let reconcile = |_key: String| {
            let failure = outcome(tries.fetch_add(1, Ordering::SeqCst));
            if failure.is_none() {
                shutdown.cancel();
            }
            async { failure.map_or(Ok(Action::AwaitChange), Err) }
        };
        run(SETTINGS, queue, metrics.clone(), reconcile, shutdown.clone())
            .await
            .unwrap();
        tries.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn failures_are_retried_until_success() {
        let metrics = Arc::new(Metrics::new());
        let outcome = |tried| (tried < 3).then(|| std::io::Error::other("not yet"));
        assert_eq!(tries(&metrics, outcome).await, 4);
        let text = metrics.text().unwrap();
        assert!(text.contains("outcome=\"failure\"} 3"), "{text}");
    }

    #[tokio::test]
    async fn suppressed_writes_are_not_failures() {
        let metrics = Arc::new(Metrics::new());
        let outcome = |tried| {
            (tried < 2).then(|| RequestError::NotLeading {
                operation: "apply",
                object: "a".to_owned(),
                source: NotLeading,
            })
        };
        assert_eq!(tries(&metrics, outcome).await, 3);
        let text = metrics.text().unwrap();
        assert!(!text.contains("outcome=\"failure\""), "{text}");
    }
}
