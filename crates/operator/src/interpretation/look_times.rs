//! How long looks at BundleDeployments wait for webhooks.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long each look at a BundleDeployment may wait for webhooks still. What is not answered by then is answered for a later look.
#[derive(Default)]
pub(super) struct LookTimes(Mutex<HashMap<String, Duration>>);

/// How long one look may wait in all. Those who wait hold up one of few workers.
const LONGEST: Duration = Duration::from_secs(4);

// === impl LookTimes ===

impl LookTimes {
    /// A look begins.
    pub(super) fn begin(&self, deployment: &str) {
        self.0.lock().insert(deployment.to_owned(), LONGEST);
    }

    /// Until when may be waited that begins to wait now.
    pub(super) fn until(&self, deployment: &str) -> Instant {
        let left = self.0.lock().get(deployment).copied();
        Instant::now() + left.unwrap_or(LONGEST)
    }

    /// Takes note that a look has waited since then.
    pub(super) fn waited(&self, deployment: &str, since: Instant) {
        let mut left = self.0.lock();
        let left = left.entry(deployment.to_owned()).or_insert(LONGEST);
        *left = left.saturating_sub(since.elapsed());
    }

    /// Forgets a BundleDeployment that is gone.
    pub(super) fn forget(&self, deployment: &str) {
        self.0.lock().remove(deployment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_in_a_look_share_its_time() {
        let times = LookTimes::default();
        let left = |times: &LookTimes| times.until("a") - Instant::now();
        times.begin("a");
        let since = Instant::now();
        tokio::time::advance(LONGEST / 4).await;
        times.waited("a", since);
        assert_eq!(left(&times), LONGEST * 3 / 4);
        assert_eq!(times.until("b") - Instant::now(), LONGEST, "it is another's");
        let since = Instant::now();
        tokio::time::advance(LONGEST).await;
        times.waited("a", since);
        assert_eq!(left(&times), Duration::ZERO);
        times.begin("a");
        assert_eq!(left(&times), LONGEST);
    }
}
