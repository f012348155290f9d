//! When something was disarmed last: API servers hear of it later.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use windlass_cluster::lease::LeaderSince;

/// When something was disarmed last, by BundleDeployment: API servers hear of it later.
///
/// A process that has just begun to lead does not know what the leader before it disarmed. It waits as if that had been
/// when it began.
pub(in crate::bundle_deployment) struct Disarmed {
    since: LeaderSince,
    last: Mutex<HashMap<String, Timestamp>>,
}

// === impl Disarmed ===

impl Disarmed {
    pub(in crate::bundle_deployment) fn new(since: LeaderSince) -> Self {
        Self {
            since,
            last: Mutex::default(),
        }
    }

    /// Notes that something was disarmed for a BundleDeployment.
    pub(in crate::bundle_deployment) fn note(&self, name: &str, now: Timestamp) {
        self.last.lock().insert(name.to_owned(), now);
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.last.lock().remove(name);
    }

    /// How much of `delay` is left.
    pub(in crate::bundle_deployment) fn left(
        &self,
        name: &str,
        now: Timestamp,
        delay: Duration,
    ) -> Option<Duration> {
        let waited = match self.last.lock().get(name) {
            Some(noted) => Duration::try_from(now.duration_since(*noted)).unwrap_or_default(),
            None => self.since.elapsed(),
        };
        delay.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use windlass_cluster::lease::Leadership;

    use super::*;

    #[tokio::test]
    async fn whoever_takes_over_waits_as_if_it_had_disarmed_when_it_began_to_lead() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let disarmed = Disarmed::new(Leadership::always().acquired().await);
        // It began to lead just now, whatever the calendar says, and however long it stood by.
        let (hour, most) = (Duration::from_secs(3600), Duration::from_secs(3000));
        for now in [at(0), at(1_000_000_000)] {
            assert!(disarmed.left("a", now, hour).is_some_and(|left| left > most));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(disarmed.left("a", at(100), Duration::from_millis(1)), None);
    }

    #[tokio::test]
    async fn what_was_noted_counts_for_its_bundle_deployment() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let delay = Duration::from_secs(10);
        let disarmed = Disarmed::new(Leadership::always().acquired().await);
        disarmed.note("a", at(120));
        assert_eq!(disarmed.left("a", at(121), delay), Some(Duration::from_secs(9)));
        assert_eq!(disarmed.left("a", at(130), delay), None);
        assert!(disarmed.left("b", at(130), delay).is_some());
        disarmed.forget("a");
        assert!(disarmed.left("a", at(130), delay).is_some());
        assert_eq!(disarmed.left("a", at(50), Duration::ZERO), None);
    }
}
