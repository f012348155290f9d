//! Calls of a server, as often as a large cluster makes them.

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

/// Calls that go on until they are ended.
pub(super) struct ServerCalls {
    made: Arc<AtomicU64>,
    failures: Arc<Mutex<Vec<String>>>,
    callers: JoinSet<()>,
}

/// How many callers there are: one that waits keeps no other.
const CALLERS: u32 = 4;

/// The longest that each of them waits from one call to the next, at random: together they call 50 times a second, and a connection is
/// used again after any time.
const LONGEST_WAIT: Duration = Duration::from_millis(160);

// === impl ServerCalls ===

impl ServerCalls {
    /// Starts them; each is made by `call`, which says why one failed.
    pub(super) fn start<F>(call: impl Fn() -> F + Clone + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let (made, failures) = (Arc::<AtomicU64>::default(), Arc::<Mutex<Vec<String>>>::default());
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(call_on(call.clone(), made.clone(), failures.clone()));
        }
        Self {
            made,
            failures,
            callers,
        }
    }

    /// Waits for so many more.
    pub(super) async fn at_least(&self, more: u64) -> anyhow::Result<()> {
        let wanted = self.made.load(Ordering::Relaxed) + more;
        until("the server is called", PATIENCE, async || {
            let made = self.made.load(Ordering::Relaxed);
            Ok(check(made >= wanted, || format!("{made} of {wanted} calls")))
        })
        .await
    }

    /// Ends them, and says how many there were. Fails if one of them has.
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

async fn call_on<F>(call: impl Fn() -> F, made: Arc<AtomicU64>, failures: Arc<Mutex<Vec<String>>>)
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
