//! Calls of a server at the rate of a large cluster.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{task::JoinSet, time::Instant};

use crate::steps::{PATIENCE, check, until};

/// Calls that continue until they are stopped.
pub(super) struct ServerCalls {
    made: Arc<AtomicU64>,
    failures: Arc<Mutex<Vec<String>>>,
    callers: JoinSet<()>,
}

/// The number of concurrent callers: a slow call does not delay the others.
const CALLERS: u32 = 4;

/// The maximum random delay between two calls of a caller. Together they send 50 calls per second, and reuse
/// connections after varying idle times.
const LONGEST_WAIT: Duration = Duration::from_millis(160);

impl ServerCalls {
    /// Starts the callers; `call` returns the cause of a failure.
    pub(super) fn start<F>(call: impl Fn() -> F + Clone + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let (made, failures) = (Arc::<AtomicU64>::default(), Arc::<Mutex<Vec<String>>>::default());
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(call_repeatedly(call.clone(), made.clone(), failures.clone()));
        }
        Self {
            made,
            failures,
            callers,
        }
    }

    /// Waits for this number of further calls.
    pub(super) async fn at_least(&self, more: u64) -> anyhow::Result<()> {
        let wanted = self.made.load(Ordering::Relaxed) + more;
        until("the server is called", PATIENCE, async || {
            let made = self.made.load(Ordering::Relaxed);
            Ok(check(made >= wanted, || format!("{made} of {wanted} calls")))
        })
        .await
    }

    /// Stops the callers, and returns the number of calls. Fails if one of them failed.
    pub(super) async fn end(mut self) -> anyhow::Result<u64> {
        self.callers.shutdown().await;
        let made = self.made.load(Ordering::Relaxed);
        let failures = std::mem::take(&mut *self.failures.lock());
        anyhow::ensure!(
            failures.is_empty(),
            "{} of {made} calls failed: {}",
            failures.len(),
            failures.join("; ")
        );
        Ok(made)
    }
}

async fn call_repeatedly<F>(call: impl Fn() -> F, made: Arc<AtomicU64>, failures: Arc<Mutex<Vec<String>>>)
where
    F: Future<Output = Result<(), String>>,
{
    let mut next = Instant::now();
    loop {
        next += LONGEST_WAIT.mul_f64(rand::random());
        tokio::time::sleep_until(next).await;
        if let Err(error) = call().await {
            failures.lock().push(error);
        }
        made.fetch_add(1, Ordering::Relaxed);
    }
}
