//! How often it is looked whether something is still in the way of a ServingCertificate.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_object::ObjectKey;

/// Since when something has been in the way of each ServingCertificate. It may be lost with the process.
#[derive(Default)]
pub(super) struct Obstacles(Mutex<HashMap<ObjectKey, (&'static str, Instant)>>);

/// How soon it is looked again whether something is still in the way, which no watch may see.
const FIRST_PAUSE: Duration = Duration::from_secs(30);

/// How late it is looked again at the most.
const LAST_PAUSE: Duration = Duration::from_secs(300);

// === impl Obstacles ===

impl Obstacles {
    /// Notes that something is in the way. How long until it is looked again: as long as it has been there, so that who has
    /// many of them costs little.
    pub(super) fn note(&self, certificate: &ObjectKey, reason: &'static str) -> Duration {
        let now = Instant::now();
        let mut known = self.0.lock();
        let (known_reason, since) = known.entry(certificate.clone()).or_insert((reason, now));
        if *known_reason != reason {
            (*known_reason, *since) = (reason, now);
        }
        (now - *since).clamp(FIRST_PAUSE, LAST_PAUSE)
    }

    /// Nothing is in the way of a ServingCertificate.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        self.0.lock().remove(certificate);
    }
}

#[cfg(test)]
mod tests {
    use windlass_cluster::kinds;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_stays_in_the_way_is_looked_at_less_and_less_often() {
        let (obstacles, certificate) = (
            Obstacles::default(),
            kinds::SERVING_CERTIFICATE.object(Some("n"), "a"),
        );
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let pause = obstacles.note(&certificate, "ForeignSecret");
            pauses.push(pause.as_secs());
            tokio::time::sleep(pause).await;
        }
        assert_eq!(pauses, [30, 30, 60, 120, 240, 300]);
        assert_eq!(
            obstacles.note(&certificate, "SecretTerminating"),
            FIRST_PAUSE,
            "something else"
        );
        obstacles.forget(&certificate);
        assert!(obstacles.0.lock().is_empty());
    }
}
