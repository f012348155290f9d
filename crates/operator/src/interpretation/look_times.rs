//! How long looks at BundleDeployments wait for webhooks.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long each look at a BundleDeployment may wait for webhooks still. What is not answered by then is answered for a later look.
#[derive(Default)]
pub(super) struct LookTimes(Mutex<HashMap<String, LookTime>>);

/// What one look has.
struct LookTime {
    left: Duration,
    /// How many wait at the moment, and since when any does.
    waiting: usize,
    since: Instant,
}

/// Somebody waits, until this is dropped.
pub(super) struct LookWait<'a> {
    times: &'a LookTimes,
    deployment: String,
    until: Instant,
}

/// How long one look may wait in all. Those who wait hold up one of few workers.
const LONGEST: Duration = Duration::from_secs(4);

// === impl LookTimes ===

impl LookTimes {
    /// A look begins.
    pub(super) fn begin(&self, deployment: &str) {
        let mut times = self.0.lock();
        let time = times.entry(deployment.to_owned()).or_insert_with(LookTime::new);
        time.left = LONGEST;
        time.since = Instant::now();
    }

    /// Somebody begins to wait. Time in which several wait counts once.
    pub(super) fn wait(&self, deployment: &str) -> LookWait<'_> {
        let mut times = self.0.lock();
        let time = times.entry(deployment.to_owned()).or_insert_with(LookTime::new);
        if time.waiting == 0 {
            time.since = Instant::now();
        }
        time.waiting += 1;
        LookWait {
            times: self,
            deployment: deployment.to_owned(),
            until: time.since + time.left,
        }
    }

    /// Forgets a BundleDeployment that is gone.
    pub(super) fn forget(&self, deployment: &str) {
        self.0.lock().remove(deployment);
    }
}

// === impl LookTime ===

impl LookTime {
    fn new() -> Self {
        Self {
            left: LONGEST,
            waiting: 0,
            since: Instant::now(),
        }
    }
}

// === impl LookWait ===

impl LookWait<'_> {
    /// Until when it may.
    pub(super) fn until(&self) -> Instant {
        self.until
    }
}

impl Drop for LookWait<'_> {
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

    fn left(times: &LookTimes) -> Duration {
        times.wait("a").until() - Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_in_a_look_share_its_time() {
        let times = LookTimes::default();
        times.begin("a");
        for part in [3, 2] {
            let (one, other) = (times.wait("a"), times.wait("a"));
            tokio::time::advance(LONGEST / 4).await;
            assert_eq!(one.until(), other.until());
            drop((one, other));
            assert_eq!(
                left(&times),
                LONGEST * part / 4,
                "those who wait at once wait once"
            );
            tokio::time::advance(LONGEST).await;
        }
        assert_eq!(left(&times), LONGEST / 2, "nobody has waited");
        assert_eq!(
            times.wait("b").until() - Instant::now(),
            LONGEST,
            "it is another's"
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
