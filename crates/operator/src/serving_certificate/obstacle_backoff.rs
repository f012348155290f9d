//! Backoff for checking whether an obstacle of a ServingCertificate still exists.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_object::ObjectKey;

/// When the obstacle of each ServingCertificate was first seen. May be lost with the process.
#[derive(Default)]
pub(super) struct ObstacleBackoff(Mutex<HashMap<ObjectKey, (&'static str, Instant)>>);

/// Shortest time until the next check. Checks are necessary since no watch may report that an obstacle is
/// gone.
const MIN_PAUSE: Duration = Duration::from_secs(30);

/// Longest time until the next check.
const MAX_PAUSE: Duration = Duration::from_secs(300);

impl ObstacleBackoff {
    /// Records an obstacle. Returns the time until the next check: as long as the obstacle has existed, so
    /// that many obstacles cost little.
    pub(super) fn record(&self, certificate: &ObjectKey, reason: &'static str) -> Duration {
        let now = Instant::now();
        let mut known = self.0.lock();
        let (known_reason, since) = known.entry(certificate.clone()).or_insert((reason, now));
        if *known_reason != reason {
            (*known_reason, *since) = (reason, now);
        }
        (now - *since).clamp(MIN_PAUSE, MAX_PAUSE)
    }

    /// Forgets the obstacle of a ServingCertificate.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        self.0.lock().remove(certificate);
    }
}

#[cfg(test)]
mod tests {
    use windlass_cluster::kinds;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_persisting_obstacle_is_checked_less_and_less_often() {
        let (backoff, certificate) = (
            ObstacleBackoff::default(),
            kinds::SERVING_CERTIFICATE.object(Some("n"), "a"),
        );
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let pause = backoff.record(&certificate, "ForeignSecret");
            pauses.push(pause.as_secs());
            tokio::time::sleep(pause).await;
        }
        assert_eq!(pauses, [30, 30, 60, 120, 240, 300]);
        assert_eq!(
            backoff.record(&certificate, "SecretTerminating"),
            MIN_PAUSE,
            "something else"
        );
        backoff.forget(&certificate);
        assert!(backoff.0.lock().is_empty());
    }
}
