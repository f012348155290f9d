//! When a server is asked again.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::status::Discovery;

/// What a server was asked last, and what came of it.
pub(super) struct Attempt {
    asked: Asked,
    discovery: Discovery,
    failures: u32,
    at: Instant,
}

/// What an answer depends on: when any of it changes, the server is asked again at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) uid: Value,
    pub(super) spec: Value,
    pub(super) endpoints: BTreeSet<SocketAddr>,
}

/// After what time a server is asked again that has answered: it may have been changed without any sign of that. As long as Cluster
/// API waits (`--sync-period`).
const AGAIN: Duration = Duration::from_secs(600);

/// After what time at the least a server is asked again, whatever happens; after what time one is that has failed once.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);

// === impl Attempt ===

impl Attempt {
    /// One that comes after `before`.
    pub(super) fn new(asked: Asked, discovery: Discovery, before: Option<&Self>, at: Instant) -> Self {
        let failed = before
            .filter(|before| before.asked == asked)
            .map_or(0, |before| before.failures);
        let failures = match discovery {
            Discovery::NotDiscovered(_) => failed.saturating_add(1),
            Discovery::Discovered(_) | Discovery::Paused => 0,
        };
        Self {
            asked,
            discovery,
            failures,
            at,
        }
    }

    /// What came of it, as long as the server would be asked the same.
    pub(super) fn known(&self, asked: &Asked) -> Option<&Discovery> {
        (self.asked == *asked).then_some(&self.discovery)
    }

    /// How long to wait until the server is asked again, if it is asked that.
    pub(super) fn wait(&self, asked: &Asked, now: Instant) -> Duration {
        let pause = match self.failures {
            _ if self.asked != *asked => SHORTEST,
            0 => AGAIN,
            failures => SHORTEST.saturating_mul(1 << failures.min(16)).min(AGAIN),
        };
        (self.at + pause).saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_fails_is_asked_ever_less_often_until_something_changes() {
        let asked = |generation: i64| Asked {
            uid: "1".into(),
            spec: json!({"generation": generation}),
            endpoints: BTreeSet::new(),
        };
        let now = Instant::now();
        let fail = |before: Option<&Attempt>, generation| {
            Attempt::new(
                asked(generation),
                Discovery::NotDiscovered("a".into()),
                before,
                now,
            )
        };
        let mut attempt = fail(None, 1);
        for seconds in [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            assert_eq!(attempt.wait(&asked(1), now), Duration::from_secs(seconds));
            assert_eq!(attempt.wait(&asked(2), now), SHORTEST, "not in a hot loop");
            assert!(attempt.known(&asked(1)).is_some());
            assert_eq!(attempt.known(&asked(2)), None, "nobody knows what it answers now");
            attempt = fail(Some(&attempt), 1);
        }
        assert_eq!(
            fail(Some(&attempt), 2).wait(&asked(2), now),
            Duration::from_secs(2)
        );
        let found = Attempt::new(
            asked(1),
            Discovery::Discovered(<_>::default()),
            Some(&attempt),
            now,
        );
        assert_eq!(found.wait(&asked(1), now), AGAIN);
        assert_eq!(found.wait(&asked(1), now + AGAIN), Duration::ZERO);
    }
}
