//! Backoff of discovery requests.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::status::Discovery;

/// The last discovery of a server and its result.
pub(super) struct Attempt {
    input: DiscoveryInput,
    discovery: Discovery,
    failures: u32,
    at: Instant,
}

/// What a response depends on. If any of it changes, discovery runs again immediately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiscoveryInput {
    pub(super) uid: Value,
    pub(super) spec: Value,
    pub(super) endpoints: BTreeSet<SocketAddr>,
}

/// Time until a successful discovery is repeated, since a server may change unnoticed. The same as the
/// default of Cluster API (`--sync-period`).
const SUCCESS_INTERVAL: Duration = Duration::from_secs(600);

/// Minimum time between two discoveries of a server. The backoff after failures starts with it.
pub(super) const MIN_INTERVAL: Duration = Duration::from_secs(1);

impl Attempt {
    /// Records an attempt that follows `before`.
    pub(super) fn new(
        input: DiscoveryInput,
        discovery: Discovery,
        before: Option<&Self>,
        at: Instant,
    ) -> Self {
        let failed = before
            .filter(|before| before.input == input)
            .map_or(0, |before| before.failures);
        let failures = match discovery {
            Discovery::NotDiscovered(_) => failed.saturating_add(1),
            Discovery::Discovered(_) | Discovery::Paused => 0,
        };
        Self {
            input,
            discovery,
            failures,
            at,
        }
    }

    /// Returns the result, if it is still valid for `input`.
    pub(super) fn result_for(&self, input: &DiscoveryInput) -> Option<&Discovery> {
        (self.input == *input).then_some(&self.discovery)
    }

    /// Returns how long to wait until the next discovery with `input`.
    pub(super) fn wait(&self, input: &DiscoveryInput, now: Instant) -> Duration {
        let pause = match self.failures {
            _ if self.input != *input => MIN_INTERVAL,
            0 => SUCCESS_INTERVAL,
            failures => MIN_INTERVAL
                .saturating_mul(1 << failures.min(16))
                .min(SUCCESS_INTERVAL),
        };
        (self.at + pause).saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failing_servers_are_called_less_and_less_often_until_a_change() {
        let input = |generation: i64| DiscoveryInput {
            uid: "1".into(),
            spec: json!({"generation": generation}),
            endpoints: BTreeSet::new(),
        };
        let now = Instant::now();
        let fail = |before: Option<&Attempt>, generation| {
            Attempt::new(
                input(generation),
                Discovery::NotDiscovered("a".into()),
                before,
                now,
            )
        };
        let mut attempt = fail(None, 1);
        for seconds in [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            assert_eq!(attempt.wait(&input(1), now), Duration::from_secs(seconds));
            assert_eq!(attempt.wait(&input(2), now), MIN_INTERVAL, "no busy loop");
            assert!(attempt.result_for(&input(1)).is_some());
            assert_eq!(
                attempt.result_for(&input(2)),
                None,
                "the result of another input is not used"
            );
            attempt = fail(Some(&attempt), 1);
        }
        assert_eq!(
            fail(Some(&attempt), 2).wait(&input(2), now),
            Duration::from_secs(2)
        );
        let found = Attempt::new(
            input(1),
            Discovery::Discovered(<_>::default()),
            Some(&attempt),
            now,
        );
        assert_eq!(found.wait(&input(1), now), SUCCESS_INTERVAL);
        assert_eq!(found.wait(&input(1), now + SUCCESS_INTERVAL), Duration::ZERO);
    }
}
