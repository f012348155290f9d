//! Calls of a handler, as often as a large cluster makes them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use runtime_hooks::{
    client::{CallOptions, HookClient},
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest},
};
use tokio::{task::JoinSet, time::Instant};

use super::HANDLER;
use crate::steps::{PATIENCE, check, until};

/// Calls that go on until they are ended.
pub(super) struct HandlerCalls {
    made: Arc<AtomicU64>,
    failures: Arc<Mutex<Vec<String>>>,
    callers: JoinSet<()>,
}

/// How many callers there are: one that waits keeps no other.
const CALLERS: u32 = 4;

/// The longest that each of them waits from one call to the next, at random: together they call 50 times a second, and a connection is
/// used again after any time.
const LONGEST_WAIT: Duration = Duration::from_millis(160);

// === impl HandlerCalls ===

impl HandlerCalls {
    pub(super) fn start(hooks: &HookClient) -> Self {
        let (made, failures) = (Arc::<AtomicU64>::default(), Arc::<Mutex<Vec<String>>>::default());
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(call(hooks.clone(), made.clone(), failures.clone()));
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
        until("the handler is called", PATIENCE, async || {
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

async fn call(hooks: HookClient, made: Arc<AtomicU64>, failures: Arc<Mutex<Vec<String>>>) {
    let request = BeforeClusterCreateRequest::default();
    let options = CallOptions::default();
    let mut next = Instant::now();
    loop {
        next += LONGEST_WAIT.mul_f64(rand::random());
        tokio::time::sleep_until(next).await;
        let called = hooks.call::<BeforeClusterCreate>(HANDLER, "default", &request, options);
        if let Err(error) = called.await {
            failures.lock().push(error.to_string());
        }
        made.fetch_add(1, Ordering::Relaxed);
    }
}
