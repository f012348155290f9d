//! How long reconciliations of BundleDeployments wait for webhooks.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time that each reconciliation of a BundleDeployment has left to wait for webhooks. Later answers are
/// used by the next reconciliation.
#[derive(Default)]
pub(super) struct WaitBudgets(Mutex<HashMap<String, WaitBudget>>);

/// The time of one reconciliation.
struct WaitBudget {
    left: Duration,
    /// The number of concurrent waits, and when the first of them started.
    waiting: usize,
    since: Instant,
}

/// A wait, which ends when this is dropped.
pub(super) struct WebhookWait<'a> {
    times: &'a WaitBudgets,
    deployment: String,
    until: Instant,
}

/// The longest total wait of one reconciliation, which occupies one of few workers.
const LONGEST: Duration = Duration::from_secs(4);

impl WaitBudgets {
    /// Starts a reconciliation with its full time.
    pub(super) fn begin(&self, deployment: &str) {
        let mut times = self.0.lock();
        let time = times.entry(deployment.to_owned()).or_insert_with(WaitBudget::new);
        time.left = LONGEST;
        time.since = Instant::now();
    }

    /// Starts a wait. Concurrent waits count once.
    pub(super) fn wait(&self, deployment: &str) -> WebhookWait<'_> {
        let mut times = self.0.lock();
        let time = times.entry(deployment.to_owned()).or_insert_with(WaitBudget::new);
        if time.waiting == 0 {
            time.since = Instant::now();
        }
        time.waiting += 1;
        WebhookWait {
            times: self,
            deployment: deployment.to_owned(),
            until: time.since + time.left,
        }
    }

    /// Forgets a deleted BundleDeployment.
    pub(super) fn forget(&self, deployment: &str) {
        self.0.lock().remove(deployment);
    }
}

impl WaitBudget {
    fn new() -> Self {
        Self {
            left: LONGEST,
            waiting: 0,
            since: Instant::now(),
        }
    }
}

impl WebhookWait<'_> {
    /// Returns when the wait must end.
    pub(super) fn until(&self) -> Instant {
        self.until
    }
}

impl Drop for WebhookWait<'_> {
    fn drop(&mut self) {
        let mut times = self.times.0.lock();
        let Some(time) = times.get_mut(&self.deployment) else {
            return;
        };
        time.waiting = time.waiting.saturating_sub(1);
        if time.waiting == 0 {
            time.left = time.left.saturating_sub(time.since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(times: &WaitBudgets) -> Duration {
        times.wait("a").until() - Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn all_waits_of_a_reconciliation_share_its_time() {
        let times = WaitBudgets::default();
        times.begin("a");
        for part in [3, 2] {
            let (one, other) = (times.wait("a"), times.wait("a"));
            tokio::time::advance(LONGEST / 4).await;
            assert_eq!(one.until(), other.until());
            drop((one, other));
            assert_eq!(left(&times), LONGEST * part / 4, "concurrent waits count once");
            tokio::time::advance(LONGEST).await;
        }
        assert_eq!(left(&times), LONGEST / 2, "time without waits does not count");
        assert_eq!(
            times.wait("b").until() - Instant::now(),
            LONGEST,
            "another BundleDeployment has its own time"
        );
        let wait = times.wait("a");
        tokio::time::advance(LONGEST).await;
        drop(wait);
        assert_eq!(left(&times), Duration::ZERO);
        times.begin("a");
        assert_eq!(left(&times), LONGEST);
        let wait = times.wait("a");
        times.forget("a");
        drop(wait);
        assert_eq!(left(&times), LONGEST);
    }
}
