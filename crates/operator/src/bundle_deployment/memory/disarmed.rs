//! When something was disarmed last: API servers hear of it later.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_cluster::lease::LeaderSince;

/// When something was disarmed last, by BundleDeployment: API servers hear of it later. On the steady clock, since the calendar
/// may be set.
///
/// A process that has just begun to lead does not know what the leader before it disarmed. It waits as if that had been
/// when it began.
pub(in crate::bundle_deployment) struct Disarmed {
    since: LeaderSince,
    last: Mutex<HashMap<String, Instant>>,
}

impl Disarmed {
    pub(in crate::bundle_deployment) fn new(since: LeaderSince) -> Self {
        Self {
            since,
            last: Mutex::default(),
        }
    }

    /// Notes that something was disarmed for a BundleDeployment just now.
    pub(in crate::bundle_deployment) fn note(&self, name: &str) {
        self.last.lock().insert(name.to_owned(), Instant::now());
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.last.lock().remove(name);
    }

    /// How much of `delay` is left.
    pub(in crate::bundle_deployment) fn left(&self, name: &str, delay: Duration) -> Option<Duration> {
        let waited = match self.last.lock().get(name) {
            Some(noted) => noted.elapsed(),
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
        let disarmed = Disarmed::new(Leadership::always().wait_until_acquired().await);
        // It began to lead just now, however long it stood by.
        let (hour, most) = (Duration::from_secs(3600), Duration::from_secs(3000));
        assert!(disarmed.left("a", hour).is_some_and(|left| left > most));
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(disarmed.left("a", Duration::from_millis(1)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_noted_counts_for_its_bundle_deployment() {
        let delay = Duration::from_secs(3600);
        let disarmed = Disarmed::new(Leadership::always().wait_until_acquired().await);
        tokio::time::advance(delay).await;
        assert_eq!(disarmed.left("a", delay), None);
        disarmed.note("a");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(disarmed.left("a", delay), Some(Duration::from_secs(3540)));
        assert_eq!(disarmed.left("b", delay), None);
        assert_eq!(disarmed.left("a", Duration::ZERO), None);
        disarmed.forget("a");
        assert_eq!(disarmed.left("a", delay), None);
    }
}
